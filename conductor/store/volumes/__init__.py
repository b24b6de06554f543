"""The records of block storage."""
