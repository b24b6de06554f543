"""Filters and weighers of all hosts at once, and why hosts are refused, by group."""
