"""Expand: transfers of volumes to other projects, and which messages their readers deleted.

Revision ID: 0035_volume_transfers
Revises: 0034_retyped_volumes
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import BigId, UtcDateTime

revision = "0035_volume_transfers"
down_revision: str | None = "0034_retyped_volumes"


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "volume_transfers",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("volume_id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("salt", sa.String(64), nullable=False),
        sa.Column("key_hash", sa.String(64), nullable=False),
        sa.Column("no_snapshots", sa.Boolean, nullable=False),
        sa.Column("source_project_id", sa.String(255), nullable=False),
        sa.Column("destination_project_id", sa.String(255)),
        sa.Column("accepted", sa.Boolean, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("ended_at", UtcDateTime),
    )
    op.create_index("ix_volume_transfers_volume_id", "volume_transfers", ["volume_id"])
    op.create_table(
        "deleted_volume_messages",
        sa.Column("operation_id", BigId, primary_key=True, autoincrement=False),
        sa.Column("deleted_at", UtcDateTime, nullable=False),
    )


def downgrade() -> None:
    """Drop them. No volume may be awaiting a transfer at the time."""
    op.drop_table("deleted_volume_messages")
    op.drop_table("volume_transfers")
