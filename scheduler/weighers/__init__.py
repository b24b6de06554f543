"""Weighers: plain functions ``(host, request) → float``; more is better."""
