"""Drains and rebalances: many servers' migrations, carried out by one operation."""
