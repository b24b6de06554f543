"""Block storage: endpoints."""
