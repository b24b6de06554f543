"""Security groups and address groups, and what they allow of a port's traffic."""
