"""The volumes of a VMID on the storages of a cluster."""
