"""Chooses a host for a server and claims it; owns nothing that can't be rebuilt."""
