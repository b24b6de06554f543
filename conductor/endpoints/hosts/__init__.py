"""Compute hosts: aggregates and services: endpoints."""
