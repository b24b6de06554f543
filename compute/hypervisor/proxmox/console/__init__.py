"""Consoles of VMs: Proxmox VE's websocket, VNC authentication, the terminal's framing."""
