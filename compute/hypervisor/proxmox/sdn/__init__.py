"""Software-defined networks: the vnets of projects' networks."""
