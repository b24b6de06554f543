"""Servers and what they are made with, and moves of them."""
