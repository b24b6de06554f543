"""Expand: how far the usage of an audit period was told.

Revision ID: 0039_usage_audits
Revises: 0038_queues
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import BigId, Json, UtcDateTime

revision = "0039_usage_audits"
down_revision: str | None = "0038_queues"


def upgrade() -> None:
    """Add it."""
    op.create_table(
        "usage_audits",
        sa.Column("period_beginning", UtcDateTime, nullable=False),
        sa.Column("period_ending", UtcDateTime, nullable=False),
        sa.Column("unit", sa.String(16), nullable=False),
        sa.Column("last_server_id", BigId, nullable=False),
        sa.Column("servers_by_host", Json, nullable=False),
        sa.Column("finished_at", UtcDateTime),
        sa.PrimaryKeyConstraint("period_beginning", "period_ending", name="pk_usage_audits"),
    )


def downgrade() -> None:
    """Drop it. A period that is being told is begun again after the next upgrade."""
    op.drop_table("usage_audits")
