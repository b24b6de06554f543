"""The dashboard: the public APIs as web pages, with the rights of the user who is logged in."""
