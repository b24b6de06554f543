"""What every operation runs on: the ledger runner, leases, threads, transitions of state."""
