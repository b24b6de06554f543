"""What databases say: whether a schema can be used, whether the disk is full."""
