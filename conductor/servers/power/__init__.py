"""Power actions, pause and suspend."""
