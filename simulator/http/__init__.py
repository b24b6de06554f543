"""HTTP: connections, the routes of the whole API, and the control API."""
