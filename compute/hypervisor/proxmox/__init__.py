"""The driver for Proxmox VE: the only place that uses its terms."""
