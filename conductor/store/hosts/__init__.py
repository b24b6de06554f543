"""Compute hosts, their services and aggregates, as their agents report them."""
