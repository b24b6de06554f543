"""Changes of the record alone."""
