"""Servers and what they are made with: protocols and messages."""
