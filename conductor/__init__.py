"""Owns servers and their states; the only writer of the cloud database."""
