"""Cached templates of images: caching them ahead of builds, and removing unneeded ones."""
