"""The API of storages, volumes and backups."""
