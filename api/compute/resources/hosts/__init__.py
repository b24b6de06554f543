"""Hosts and services, and the groups of hosts."""
