"""Volumes of projects: where they go, and what is done with them."""
