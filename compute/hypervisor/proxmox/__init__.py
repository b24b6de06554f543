"""The driver for Proxmox VE: the only place that knows its words."""
