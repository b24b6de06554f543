"""The nouns of the API: one noun, one file."""
