"""Flavors, who may use them, and what they require."""
