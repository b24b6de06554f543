"""What a worker sees of its clusters: hosts, VMs, consoles, and how to name errors."""
