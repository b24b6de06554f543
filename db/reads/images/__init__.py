"""Images and their metadata definitions."""
