"""The write side of the cloud database: the conductor's alone."""
