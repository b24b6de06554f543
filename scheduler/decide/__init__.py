"""Decisions: filter, weigh, claim; and the same without a claim."""
