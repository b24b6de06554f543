"""One VM: made, changed, powered and removed; templates are VMs too."""
