"""Contract: delete refused requests whose message may contain what the client sent.

Such a message could contain a whole request with the password and the user data in it.

Revision ID: 0010_secrets
Revises: 0009_disk_config
"""

from __future__ import annotations

from alembic import op

revision = "0010_secrets"
down_revision: str | None = "0009_disk_config"


def upgrade() -> None:
    """Delete requests refused as malformed; on SQLite their bytes are overwritten."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("PRAGMA secure_delete = ON")
    op.execute("DELETE FROM refusals WHERE status = 400")


def downgrade() -> None:
    """Do nothing: the rows can't be restored."""
