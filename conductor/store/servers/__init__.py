"""Servers and what they are made with: flavors, key pairs, groups, VMIDs."""
