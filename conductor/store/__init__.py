"""The write side of the cloud database, used by the conductor only."""
