"""What all operations on one cluster share, and one VMID in the hands of one operation."""
