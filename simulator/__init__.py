"""Simulated Proxmox VE clusters: `/api2/json` over HTTP(S), with the real server's failures."""
