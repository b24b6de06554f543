"""Backups of volumes: made, restored, removed."""
