"""Commands that start or prepare services on this machine, through ``launcher``."""
