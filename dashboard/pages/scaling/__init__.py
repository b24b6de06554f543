"""Scaling groups: servers whose number is kept."""
