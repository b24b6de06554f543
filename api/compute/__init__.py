"""The compute API: Nova's, as far as its clients use it."""
