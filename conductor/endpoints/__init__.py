"""The RPC endpoints of the conductor, one noun a file; ``conductor.rpc_api`` is their table."""
