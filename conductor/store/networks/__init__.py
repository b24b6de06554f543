"""Networks, subnets and ports: their addresses, what they are on the wire, and whose they are."""
