"""Expand: how snapshots of a volume are made, and where those are that are copies.

Revision ID: 0032_volume_snapshots
Revises: 0031_volumes
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import StorageName

revision = "0032_volume_snapshots"
down_revision: str | None = "0031_volumes"


def upgrade() -> None:
    """Add them; there are no snapshots yet."""
    op.add_column("volumes", sa.Column("snapshot_way", sa.String(16)))
    for name in ("host", "cluster", "node"):
        op.add_column("volume_snapshots", sa.Column(name, sa.String(255)))
    op.add_column("volume_snapshots", sa.Column("storage", StorageName))
    shared = sa.Column("shared", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("volume_snapshots", shared)


def downgrade() -> None:
    """Drop them. Snapshots must be deleted before."""
    for name in ("shared", "storage", "node", "cluster", "host"):
        op.drop_column("volume_snapshots", name)
    op.drop_column("volumes", "snapshot_way")
