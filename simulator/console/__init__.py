"""Consoles of simulated VMs: websockets, a VNC screen, a serial line."""
