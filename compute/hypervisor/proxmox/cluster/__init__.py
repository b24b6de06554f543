"""What all operations on one cluster share, and the handle of one VMID for one operation."""
