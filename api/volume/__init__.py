"""The Block Storage API (v3)."""
