"""The firewall's API."""
