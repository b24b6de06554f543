"""What is read of a cluster in bulk, and what it means."""
