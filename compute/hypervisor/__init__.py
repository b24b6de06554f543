"""Drivers, and the protocol between them and the flows."""
