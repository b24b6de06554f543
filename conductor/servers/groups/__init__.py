"""Scaling groups: an operation restores the number of their servers, whatever happens."""
