"""Expand: security groups, their rules, and the ports that are in them.

Revision ID: 0024_security_groups
Revises: 0023_project_networks
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import Json, UtcDateTime

revision = "0024_security_groups"
down_revision: str | None = "0023_project_networks"


def upgrade() -> None:
    """Add the tables; the ports that there are, are in no group."""
    op.add_column("ports", sa.Column("port_security", sa.Boolean))
    op.add_column("ports", sa.Column("address_pairs", Json))
    op.create_table(
        "security_groups",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.String(255), nullable=False),
        sa.Column("default_of", sa.String(255), unique=True),
        sa.Column("tags", Json),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
    )
    op.create_index("ix_security_groups_project_id", "security_groups", ["project_id"])
    op.create_table(
        "security_group_rules",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("security_group_id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("direction", sa.String(8), nullable=False),
        sa.Column("ethertype", sa.String(4), nullable=False),
        sa.Column("protocol", sa.String(16)),
        sa.Column("port_range_min", sa.Integer),
        sa.Column("port_range_max", sa.Integer),
        sa.Column("remote_ip_prefix", sa.String(64)),
        sa.Column("normalized_cidr", sa.String(64)),
        sa.Column("remote_group_id", sa.String(36)),
        sa.Column("description", sa.String(255), nullable=False),
        sa.Column("meaning", sa.String(160), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.UniqueConstraint("security_group_id", "meaning"),
    )
    for column in ("project_id", "remote_group_id"):
        op.create_index(f"ix_security_group_rules_{column}", "security_group_rules", [column])
    op.create_table(
        "port_security_groups",
        sa.Column("port_id", sa.String(36), primary_key=True),
        sa.Column("security_group_id", sa.String(36), primary_key=True),
    )
    op.create_index(
        "ix_port_security_groups_security_group_id", "port_security_groups", ["security_group_id"]
    )


def downgrade() -> None:
    """Drop them."""
    for table in ("port_security_groups", "security_group_rules", "security_groups"):
        op.drop_table(table)
    for name in ("address_pairs", "port_security"):
        op.drop_column("ports", name)
