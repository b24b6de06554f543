"""Expand: the outbox of notifications.

Revision ID: 0037_notifications
Revises: 0036_volume_backups
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import BigId, OrderedJson, UtcDateTime

revision = "0037_notifications"
down_revision: str | None = "0036_volume_backups"


def upgrade() -> None:
    """Add it."""
    op.create_table(
        "notification_outbox",
        sa.Column("id", BigId, nullable=False),
        sa.Column("message_id", sa.String(36), nullable=False),
        sa.Column("event", sa.String(64), nullable=False),
        sa.Column("operation_id", BigId),
        sa.Column("server_uuid", sa.String(36)),
        sa.Column("body", OrderedJson, nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("set_aside_at", UtcDateTime),
        sa.Column("reason", sa.String(255)),
        sa.PrimaryKeyConstraint("id", name="pk_notification_outbox"),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Drop it. What is not sent is lost."""
    op.drop_table("notification_outbox")
