"""Expand: VMs that the record doesn't know, and what their interfaces have.

Revision ID: 0042_other_vms
Revises: 0041_overslept
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import UtcDateTime

revision = "0042_other_vms"
down_revision: str | None = "0041_overslept"


def upgrade() -> None:
    """Create the tables."""
    op.add_column("clusters", sa.Column("looked_at", UtcDateTime))
    op.create_table(
        "other_vms",
        sa.Column("cluster", sa.String(255), primary_key=True),
        sa.Column("vmid", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("node", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("read_at", UtcDateTime),
    )
    op.create_index("ix_other_vms_read_at", "other_vms", ["read_at"])
    op.create_table(
        "other_nics",
        sa.Column("cluster", sa.String(255), primary_key=True),
        sa.Column("vmid", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("mac", sa.String(17), nullable=False),
        sa.Column("bridge", sa.String(32), nullable=False),
        sa.Column("segment", sa.Integer, nullable=False),
        sa.Column("ip", sa.String(64)),
    )
    op.create_index("ix_other_nics_mac", "other_nics", ["mac"])
    op.create_index("ix_other_nics_bridge_segment_ip", "other_nics", ["bridge", "segment", "ip"])


def downgrade() -> None:
    """Drop them."""
    op.drop_table("other_nics")
    op.drop_table("other_vms")
    op.drop_column("clusters", "looked_at")
