"""Networks, ports and security groups: protocols and messages."""
