"""Building servers: a host is chosen and claimed, an agent builds, what failed is undone."""
