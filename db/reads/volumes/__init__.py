"""Volumes and all other records of block storage."""
