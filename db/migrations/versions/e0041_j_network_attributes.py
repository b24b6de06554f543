"""Expand: more attributes of networks and ports, and revisions of what the Network API has.

Revision ID: 0041_j_network_attributes
Revises: 0040_quota_resources
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import Json

revision = "0041_j_network_attributes"
down_revision: str | None = "0040_quota_resources"

_REVISED = ("networks", "subnets", "ports", "security_groups")


def upgrade() -> None:
    """Add them; nothing is switched off yet, and everything has its first revision."""
    for table in _REVISED:
        op.add_column(
            table, sa.Column("revision", sa.Integer, nullable=False, server_default=sa.text("0"))
        )
    for table in ("networks", "ports"):
        op.add_column(table, sa.Column("admin_state_up", sa.Boolean))
    op.add_column(
        "networks",
        sa.Column("is_default", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.add_column("networks", sa.Column("port_security", sa.Boolean))
    op.add_column("ports", sa.Column("binding_host", sa.String(255)))
    op.add_column("ports", sa.Column("more_addresses", Json))
    op.create_table(
        "port_addresses",
        sa.Column("subnet_id", sa.String(36), primary_key=True),
        sa.Column("ip", sa.String(64), primary_key=True),
        sa.Column("port_id", sa.String(36), nullable=False),
    )
    op.create_index("ix_port_addresses_port_id", "port_addresses", ["port_id"])
    op.add_column(
        "security_groups",
        sa.Column("stateful", sa.Boolean, nullable=False, server_default=sa.true()),
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_column("security_groups", "stateful")
    op.drop_table("port_addresses")
    op.drop_column("ports", "more_addresses")
    op.drop_column("ports", "binding_host")
    op.drop_column("networks", "port_security")
    op.drop_column("networks", "is_default")
    for table in ("ports", "networks"):
        op.drop_column(table, "admin_state_up")
    for table in reversed(_REVISED):
        op.drop_column(table, "revision")
