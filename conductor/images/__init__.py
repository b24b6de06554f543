"""Cached templates of images: which are made ahead, and which nobody needs."""
