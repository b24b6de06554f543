"""Expand: backups of volumes, and which volumes are made of one.

Revision ID: 0036_volume_backups
Revises: 0035_volume_transfers
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import Json, StorageName, UtcDateTime

revision = "0036_volume_backups"
down_revision: str | None = "0035_volume_transfers"


def _name(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.String(255))


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false())


def upgrade() -> None:
    """Add them."""
    op.create_table(
        "volume_backups",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("volume_id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False, server_default=""),
        sa.Column("description", sa.Text),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("size_gib", sa.Integer, nullable=False),
        sa.Column("metadata", Json, nullable=False),
        _name("container"),
        _name("availability_zone"),
        sa.Column("snapshot_id", sa.String(36)),
        _flag("bootable"),
        sa.Column("image_metadata", Json),
        _name("host"),
        _name("cluster"),
        _name("node"),
        sa.Column("storage", StorageName),
        _flag("shared"),
        sa.Column("vmid", sa.Integer),
        sa.Column("archive", sa.String(255)),
        sa.Column("size_bytes", sa.BigInteger),
        sa.Column("fail_reason", sa.Text),
        sa.Column("data_timestamp", UtcDateTime, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_volume_backups"),
    )
    columns = ["project_id", "created_at", "id"]
    op.create_index("ix_volume_backups_project", "volume_backups", columns)
    op.create_index("ix_volume_backups_volume_id", "volume_backups", ["volume_id"])
    op.add_column("volumes", sa.Column("backup_id", sa.String(36)))


def downgrade() -> None:
    """Drop them. Backups must be deleted before."""
    op.drop_column("volumes", "backup_id")
    op.drop_table("volume_backups")
