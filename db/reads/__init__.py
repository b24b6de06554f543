"""Read-side queries: a connection in, frozen dataclasses out."""
