"""Builds that wait for room on a host: which begin to wait, and which are tried again."""
