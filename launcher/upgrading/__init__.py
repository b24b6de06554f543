"""What prevents an upgrade to this release: run before its services are started."""
