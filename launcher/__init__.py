"""The composition root: configuration, wiring, services as processes."""
