"""Expand: tokens that open consoles; only their hashes are kept.

Revision ID: 0017_console_tokens
Revises: 0016_migrations
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import UtcDateTime

revision = "0017_console_tokens"
down_revision: str | None = "0016_migrations"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "console_tokens",
        sa.Column("token_hash", sa.String(64), primary_key=True),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("console_type", sa.String(16), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("port", sa.Integer, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.Column("used_at", UtcDateTime),
    )
    op.create_index("ix_console_tokens_expires_at", "console_tokens", ["expires_at"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("console_tokens")
