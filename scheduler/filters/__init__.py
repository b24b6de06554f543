"""Filters: plain functions ``(host, request) → reason | None``; the reason carries the numbers."""
