"""Networks, subnets, ports and security groups."""
