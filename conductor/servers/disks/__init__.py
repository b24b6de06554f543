"""Disks of a server: new ones, copies, and parking them."""
