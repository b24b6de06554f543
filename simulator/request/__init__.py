"""One request: its call, and the checks of its parameters and permissions."""
