"""The API by family of paths; VMs have a room of their own."""
