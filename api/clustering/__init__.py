"""The clustering API v1: groups of servers whose number is kept."""
