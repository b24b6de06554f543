"""One server: its tabs, and what is done to it."""
