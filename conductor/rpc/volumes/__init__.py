"""Block storage: protocols and messages."""
