"""Expand: networks on SDN vnets, and the vnets of each cluster.

Revision ID: 0030_vnets
Revises: 0029_image_imports
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import UtcDateTime

revision = "0030_vnets"
down_revision: str | None = "0029_image_imports"


def upgrade() -> None:
    """Add them; the networks that there are have none, and are usable."""
    op.add_column("networks", sa.Column("zone", sa.String(16)))
    op.add_column("networks", sa.Column("vni", sa.Integer))
    op.add_column(
        "networks",
        sa.Column("status", sa.String(16), nullable=False, server_default=sa.text("'ACTIVE'")),
    )
    op.create_index("ux_networks_zone_vni", "networks", ["zone", "vni"], unique=True)
    op.create_table(
        "vnets",
        sa.Column("cluster", sa.String(255), nullable=False),
        sa.Column("network_id", sa.String(36), nullable=False),
        sa.Column("vnet", sa.String(8), nullable=False),
        sa.Column("zone", sa.String(16), nullable=False),
        sa.Column("vni", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("cluster", "network_id", name="pk_vnets"),
    )
    op.create_index("ux_vnets_cluster_vnet", "vnets", ["cluster", "vnet"], unique=True)
    op.create_index("ux_vnets_cluster_zone_vni", "vnets", ["cluster", "zone", "vni"], unique=True)


def downgrade() -> None:
    """Drop them. Networks on vnets must be deleted before."""
    op.drop_table("vnets")
    op.drop_index("ux_networks_zone_vni", "networks")
    for column in ("status", "vni", "zone"):
        op.drop_column("networks", column)
