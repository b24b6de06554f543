"""Images: rows, data and templates."""
