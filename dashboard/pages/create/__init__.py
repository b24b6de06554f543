"""The form for a new server: what it offers, what it asks for, and the same elsewhere."""
