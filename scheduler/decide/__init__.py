"""Decisions: filter, weigh and rank hosts; for one server, for many, and what if. Pure."""
