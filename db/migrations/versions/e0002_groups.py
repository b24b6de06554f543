"""Expand: host aggregates and server groups.

Revision ID: 0002_groups
Revises: 0001_initial
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import Json, UtcDateTime

revision = "0002_groups"
down_revision: str | None = "0001_initial"

_TABLES = (
    "aggregates",
    "aggregate_hosts",
    "aggregate_versions",
    "aggregate_mirrors",
    "server_groups",
    "server_group_anchors",
    "server_group_places",
)


def upgrade() -> None:
    """Add tables, and columns that may be empty."""
    op.add_column("servers", sa.Column("server_group_uuid", sa.String(36), nullable=True))
    op.create_index("ix_servers_server_group", "servers", ["server_group_uuid", "deleted_at"])
    op.add_column("services", sa.Column("aggregate_zone", sa.String(255), nullable=True))
    _aggregates()
    _server_groups()


def downgrade() -> None:
    """Drop them."""
    for name in reversed(_TABLES):
        op.drop_table(name)
    op.drop_column("services", "aggregate_zone")
    op.drop_index("ix_servers_server_group", "servers")
    op.drop_column("servers", "server_group_uuid")


def _aggregates() -> None:
    op.create_table(
        "aggregates",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_aggregates"),
        sa.UniqueConstraint("uuid", name="uq_aggregates_uuid"),
        sa.UniqueConstraint("name", name="uq_aggregates_name"),
    )
    op.create_table(
        "aggregate_hosts",
        sa.Column("aggregate_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("aggregate_id", "host", name="pk_aggregate_hosts"),
    )
    op.create_index("ix_aggregate_hosts_host", "aggregate_hosts", ["host"])
    op.create_table(
        "aggregate_versions",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_aggregate_versions"),
    )
    op.create_table(
        "aggregate_mirrors",
        sa.Column("provider_uuid", sa.String(36), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("provider_uuid", name="pk_aggregate_mirrors"),
    )


def _server_groups() -> None:
    op.create_table(
        "server_groups",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("policy", sa.String(32), nullable=False),
        sa.Column("rules", Json, nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_server_groups"),
        sa.UniqueConstraint("uuid", name="uq_server_groups_uuid"),
    )
    op.create_index("ix_server_groups_project_id", "server_groups", ["project_id"])
    op.create_table(
        "server_group_anchors",
        sa.Column("group_uuid", sa.String(36), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("group_uuid", name="pk_server_group_anchors"),
    )
    op.create_table(
        "server_group_places",
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("group_uuid", sa.String(36), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("server_uuid", name="pk_server_group_places"),
        sa.UniqueConstraint(
            "group_uuid", "host", "slot", name="uq_server_group_places_group_uuid_host_slot"
        ),
    )
