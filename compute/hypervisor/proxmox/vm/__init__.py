"""Work on one VM: create, change, power, remove; templates are VMs too."""
