"""What the API does to virtual machines: create, clone, configure, power, migrate, destroy."""
