"""Follows what others do to VMs: power and place, drift, relocation, allocation."""
