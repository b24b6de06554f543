"""The standing audit: servers = VMs = volumes = allocations = addresses = quota."""
