"""What an operation does, one action a file."""
