"""The virtual hardware that flavors and images ask for, in OpenStack's words. Pure."""
