"""One VM: made, changed, powered and removed; and whose it is."""
