"""The audit: compares servers, VMs, volumes, allocations, addresses and quota."""
