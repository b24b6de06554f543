"""The part of the OpenStack Network API v2.0 that clients need; read-only."""
