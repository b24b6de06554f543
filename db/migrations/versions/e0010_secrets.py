"""Contract: forget refused requests whose message may name what the client sent.

Such a message could hold a whole request with the password and the user data in it.

Revision ID: 0010_secrets
Revises: 0009_disk_config
"""

from __future__ import annotations

from alembic import op

revision = "0010_secrets"
down_revision: str | None = "0009_disk_config"


def upgrade() -> None:
    """Remove what was refused as malformed; on SQLite its bytes are overwritten."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("PRAGMA secure_delete = ON")
    op.execute("DELETE FROM refusals WHERE status = 400")


def downgrade() -> None:
    """Nothing: what is gone is gone."""
