"""Expand: networks and subnets of projects, and who else may use them.

Revision ID: 0023_project_networks
Revises: 0022_network_tags
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from db.types import Json, UtcDateTime

revision = "0023_project_networks"
down_revision: str | None = "0022_network_tags"

_NAME = sa.String(255)
_EMPTY: Any = {"nullable": False, "server_default": sa.text("''")}
_TRUE: Any = {"nullable": False, "server_default": sa.true()}
_FALSE: Any = {"nullable": False, "server_default": sa.false()}


def _columns() -> dict[str, list[sa.Column[object]]]:
    return {
        "networks": [
            sa.Column("project_id", _NAME, **_EMPTY),
            sa.Column("description", _NAME, **_EMPTY),
            sa.Column("external", sa.Boolean, **_FALSE),
            sa.Column("discovered", sa.Boolean, **_TRUE),
            sa.Column("auto_allocated", sa.Boolean, **_FALSE),
            sa.Column("availability_zone_hints", Json),
            sa.Column("segment", sa.Integer, nullable=False, server_default=sa.text("0")),
        ],
        "subnets": [
            sa.Column("project_id", _NAME, **_EMPTY),
            sa.Column("description", _NAME, **_EMPTY),
            sa.Column("configured", sa.Boolean, **_TRUE),
            sa.Column("pools", Json),
            sa.Column("host_routes", Json),
            sa.Column("enable_dhcp", sa.Boolean, **_FALSE),
            sa.Column("ipv6_ra_mode", sa.String(16)),
            sa.Column("ipv6_address_mode", sa.String(16)),
        ],
    }


def upgrade() -> None:
    """Add them; what there is belongs to no project: clusters and the configuration say what."""
    # A bridge may have several networks from now on, with a VLAN tag each.
    with op.batch_alter_table("networks") as batch:
        batch.drop_constraint("uq_networks_bridge", type_="unique")
    for table, columns in _columns().items():
        for column in columns:
            op.add_column(table, column)
    op.execute("UPDATE networks SET segment = vlan WHERE vlan IS NOT NULL")
    op.create_index("ix_networks_project_id", "networks", ["project_id"])
    op.create_index("ix_subnets_project_id", "subnets", ["project_id"])
    op.create_index("ux_networks_bridge_segment", "networks", ["bridge", "segment"], unique=True)
    op.create_table(
        "network_shares",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("network_id", sa.String(36), nullable=False),
        sa.Column("target", _NAME, nullable=False),
        sa.Column("project_id", _NAME, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_network_shares"),
        sa.UniqueConstraint("network_id", "target", name="uq_network_shares_network_id_target"),
    )
    op.create_index("ix_network_shares_project_id", "network_shares", ["project_id"])
    op.create_index("ix_network_shares_target", "network_shares", ["target"])


def downgrade() -> None:
    """Drop them. Networks that were made meanwhile must be deleted before."""
    op.drop_table("network_shares")
    for name in ("ux_networks_bridge_segment", "ix_networks_project_id"):
        op.drop_index(name, "networks")
    op.drop_index("ix_subnets_project_id", "subnets")
    for table, columns in _columns().items():
        for column in reversed(columns):
            op.drop_column(table, column.name)
    with op.batch_alter_table("networks") as batch:
        batch.create_unique_constraint("uq_networks_bridge", ["bridge"])
