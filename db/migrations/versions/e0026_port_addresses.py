"""Expand: an IPv6 address beside a port's IPv4 address.

Revision ID: 0026_port_addresses
Revises: 0025_filter_changes
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026_port_addresses"
down_revision: str | None = "0025_filter_changes"


def upgrade() -> None:
    """Add the columns; the ports that there are keep the one address that they have."""
    op.add_column("ports", sa.Column("subnet6_id", sa.String(36)))
    op.add_column("ports", sa.Column("ip6", sa.String(64)))
    op.create_index("ux_ports_subnet6_id_ip6", "ports", ["subnet6_id", "ip6"], unique=True)


def downgrade() -> None:
    """Drop them."""
    op.drop_index("ux_ports_subnet6_id_ip6", "ports")
    op.drop_column("ports", "ip6")
    op.drop_column("ports", "subnet6_id")
