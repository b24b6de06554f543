"""Owns servers and their life: the only writer of the cloud database."""
