"""The part of the OpenStack Image API v2 that clients need; read-only."""
