"""Audits, their findings, and what only they read of the record."""
