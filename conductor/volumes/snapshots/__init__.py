"""Snapshots of volumes: taken, removed, and volumes brought back to them."""
