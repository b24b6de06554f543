"""The whole cloud from one command: its process tree, from start to end."""
