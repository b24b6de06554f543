"""The state of a cluster: its objects, locks, tasks and faults."""
