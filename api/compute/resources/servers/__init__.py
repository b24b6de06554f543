"""Servers: their list and creation, what belongs to one, and what may be done to it."""
