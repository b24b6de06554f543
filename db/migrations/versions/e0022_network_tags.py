"""Expand: the tags of networks, subnets and ports.

Revision ID: 0022_network_tags
Revises: 0021_user_ports
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import Json

revision = "0022_network_tags"
down_revision: str | None = "0021_user_ports"

_TABLES = ("networks", "subnets", "ports")


def upgrade() -> None:
    """Add the columns; what there is has no tags."""
    for table in _TABLES:
        op.add_column(table, sa.Column("tags", Json))


def downgrade() -> None:
    """Drop them."""
    for table in _TABLES:
        op.drop_column(table, "tags")
