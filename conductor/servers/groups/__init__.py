"""Scaling groups: an operation keeps the number of their servers, whatever happens to them."""
