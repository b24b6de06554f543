"""Compute hosts: aggregates and services: protocols and messages."""
