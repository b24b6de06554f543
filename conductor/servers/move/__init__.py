"""Resizing servers and moving them to other hosts."""
