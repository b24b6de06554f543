"""HTTP in, RPC out: the compute, image and network APIs. Writes no database."""
