"""Alembic's environment and revisions of the placement database."""
