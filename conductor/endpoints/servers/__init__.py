"""Servers and what they are made with: endpoints."""
