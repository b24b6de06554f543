"""What the API accepts, as JSON schemas: one noun, one file."""
