"""Commands for administrators: nodes, audits, where servers would fit."""
