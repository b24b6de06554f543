"""Networks, their ports, and security groups."""
