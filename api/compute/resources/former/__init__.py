"""What Nova once had, or has until a version."""
