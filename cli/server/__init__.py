"""``micronova server …``."""
