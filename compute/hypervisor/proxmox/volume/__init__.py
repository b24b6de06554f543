"""Volumes: holder VMs, and their disks."""
