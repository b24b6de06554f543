"""The API's work on virtual machines: create, clone, configure, power, migrate, destroy."""
