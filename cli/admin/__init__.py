"""Commands of whoever runs a cloud: its nodes, its audits, where servers would fit."""
