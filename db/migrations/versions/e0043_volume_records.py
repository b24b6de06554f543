"""Expand: default types of projects, disabled volume services, what backed up volumes were called.

Revision ID: 0043_volume_records
Revises: 0042_other_vms
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import Json

revision = "0043_volume_records"
down_revision: str | None = "0042_other_vms"

_DISABLED = sa.Column("volumes_disabled", sa.Boolean, nullable=False, server_default=sa.false())
_REASON = sa.Column("volumes_disabled_reason", sa.String(255))


def upgrade() -> None:
    """Add them."""
    op.create_table(
        "volume_default_types",
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("type_id", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name="pk_volume_default_types"),
    )
    op.create_index("ix_volume_default_types_type_id", "volume_default_types", ["type_id"])
    op.add_column("services", _DISABLED)
    op.add_column("services", _REASON)
    op.add_column("volume_backups", sa.Column("described", Json))


def downgrade() -> None:
    """Drop them: backups restore no names then, and all volume services are enabled."""
    op.drop_column("volume_backups", "described")
    op.drop_column("services", "volumes_disabled_reason")
    op.drop_column("services", "volumes_disabled")
    op.drop_index("ix_volume_default_types_type_id", "volume_default_types")
    op.drop_table("volume_default_types")
