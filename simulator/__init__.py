"""Proxmox VE clusters on the wire: `/api2/json` over HTTP(S), with the real server's failures."""
