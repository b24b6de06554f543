"""The hosts of a decision: what agents report, joined with what placement counts."""
