"""Networks, ports and security groups: endpoints."""
