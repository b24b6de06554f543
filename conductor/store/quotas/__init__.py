"""Quotas: limits of projects, checked and taken under one lock."""
