"""Pages of what the ledger has: who did what."""
