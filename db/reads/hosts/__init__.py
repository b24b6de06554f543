"""Compute hosts, their services, aggregates and clusters."""
