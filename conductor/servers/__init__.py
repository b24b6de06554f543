"""The flows: what the operation of each action does, one action a file."""
