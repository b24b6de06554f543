"""What a worker process runs: RPC, a pool of jobs, heartbeats and reports."""
