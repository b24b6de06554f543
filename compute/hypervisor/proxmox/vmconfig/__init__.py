"""Values of a VM's configuration: hardware, disks, marks. Pure."""
