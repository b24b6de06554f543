"""The RPC surface of the conductor: one noun a file."""
