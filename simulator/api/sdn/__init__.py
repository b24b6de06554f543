"""The API of software-defined networks."""
