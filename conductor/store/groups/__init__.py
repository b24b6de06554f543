"""The write side of scaling groups."""
