"""Revisions: expand first, contract in a later release."""
