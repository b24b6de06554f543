"""The RPC endpoints of the conductor, one noun a file; ``conductor.rpc`` has what they answer."""
