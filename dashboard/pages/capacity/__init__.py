"""Pages of storages, and of how the capacity was used over a year."""
