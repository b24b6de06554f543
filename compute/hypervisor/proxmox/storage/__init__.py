"""Disks, volumes and templates on the storages of a cluster."""
