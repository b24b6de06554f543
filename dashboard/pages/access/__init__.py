"""Who logs in, and with what: application credentials, the password."""
