"""One volume: its page, what is done to it, and copies of it."""
