"""Expand: what runs and waits on each host, as its agent last reported it.

Revision ID: 0038_queues
Revises: 0037_notifications
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import Json

revision = "0038_queues"
down_revision: str | None = "0037_notifications"


def upgrade() -> None:
    """Add it; unknown until the next heartbeats."""
    op.add_column("services", sa.Column("queues", Json))


def downgrade() -> None:
    """Drop it: heartbeats bring it again."""
    op.drop_column("services", "queues")
