"""Deleting servers, and removing what the audit found left of them."""
