"""The checks, one subject a module: each compares a cluster's facts, and yields findings. Pure."""
