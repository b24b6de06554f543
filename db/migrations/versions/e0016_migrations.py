"""Expand: moves and resizes of servers.

Revision ID: 0016_migrations
Revises: 0015_quota_classes
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import BigId, Json, UtcDateTime

revision = "0016_migrations"
down_revision: str | None = "0015_quota_classes"

_UUID = sa.String(36)
_NAME = sa.String(255)


def upgrade() -> None:
    """Add the table; nothing was ever moved."""
    op.create_table(
        "migrations",
        sa.Column("id", BigId, primary_key=True),
        sa.Column("uuid", _UUID, nullable=False, unique=True),
        sa.Column("server_uuid", _UUID, nullable=False),
        sa.Column("operation_id", BigId),
        sa.Column("project_id", _NAME, nullable=False),
        sa.Column("user_id", _NAME, nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("source_host", _NAME),
        sa.Column("source_node", _NAME),
        sa.Column("dest_host", _NAME),
        sa.Column("dest_node", _NAME),
        sa.Column("dest_address", _NAME),
        sa.Column("old_flavor_number", sa.Integer),
        sa.Column("new_flavor_number", sa.Integer),
        sa.Column("old_flavor", Json),
        sa.Column("new_flavor", Json),
        sa.Column("old_vm_state", sa.String(32)),
        sa.Column("claim", Json),
        sa.Column("memory_total", sa.BigInteger),
        sa.Column("memory_processed", sa.BigInteger),
        sa.Column("memory_remaining", sa.BigInteger),
        sa.Column("disk_total", sa.BigInteger),
        sa.Column("disk_processed", sa.BigInteger),
        sa.Column("disk_remaining", sa.BigInteger),
        sa.Column("hidden", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_migrations_project", "migrations", ["project_id", "id"])
    op.create_index("ix_migrations_server", "migrations", ["server_uuid", "id"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("migrations")
