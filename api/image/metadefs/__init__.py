"""Metadata definitions: the catalogue of what this cloud understands, and its API."""
