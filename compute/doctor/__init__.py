"""The doctor's look at Proxmox VE clusters: facts are read, then compared by pure checks."""
