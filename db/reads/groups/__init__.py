"""Scaling groups: profiles, groups, members, policies and receivers."""
