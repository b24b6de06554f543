"""Proxmox VE over HTTP: the client, its errors, tasks and privileges."""
