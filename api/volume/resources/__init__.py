"""What answers each route, one module a noun."""
