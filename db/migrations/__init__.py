"""Alembic environment of the cloud database."""
