"""Backups of a cloud's databases and keys, and how one is put back."""
