"""Builds that wait for room on a host: who begins to wait, and who is woken by what is freed."""
