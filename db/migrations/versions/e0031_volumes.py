"""Expand: volumes, their attachments, snapshots and types.

Revision ID: 0031_volumes
Revises: 0030_vnets
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import Json, StorageName, UtcDateTime

revision = "0031_volumes"
down_revision: str | None = "0030_vnets"


def _volumes() -> None:
    op.create_table(
        "volumes",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False, server_default=sa.text("''")),
        sa.Column("description", sa.Text),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("previous_status", sa.String(32)),
        sa.Column("size_gib", sa.Integer, nullable=False),
        sa.Column("type_id", sa.String(36)),
        sa.Column("availability_zone", sa.String(255)),
        sa.Column("bootable", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("readonly", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("image_metadata", Json),
        sa.Column("image_id", sa.String(36)),
        sa.Column("snapshot_id", sa.String(36)),
        sa.Column("source_volume_id", sa.String(36)),
        sa.Column("host", sa.String(255)),
        sa.Column("cluster", sa.String(255)),
        sa.Column("node", sa.String(255)),
        sa.Column("storage", StorageName),
        sa.Column("shared", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("vmid", sa.Integer),
        sa.Column("volid", sa.String(255)),
        sa.Column("last_user", Json),
        sa.Column("fault", sa.Text),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime),
        sa.Column("launched_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_volumes"),
    )
    op.create_index("ix_volumes_cluster_vmid", "volumes", ["cluster", "vmid"])
    op.create_index("ix_volumes_project", "volumes", ["project_id", "created_at", "id"])
    op.create_index("ix_volumes_type_id", "volumes", ["type_id"])


def _volume_attachments() -> None:
    op.create_table(
        "volume_attachments",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("volume_id", sa.String(36), nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("slot", sa.Integer, nullable=False),
        sa.Column("mode", sa.String(2), nullable=False),
        sa.Column("tag", sa.String(60)),
        sa.Column("delete_on_termination", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("attached_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_volume_attachments"),
        sa.UniqueConstraint("server_uuid", "slot", name="uq_volume_attachments_server_uuid_slot"),
        sa.UniqueConstraint("volume_id", name="uq_volume_attachments_volume_id"),
    )
    op.create_index("ix_volume_attachments_server_uuid", "volume_attachments", ["server_uuid"])


def _volume_snapshots() -> None:
    op.create_table(
        "volume_snapshots",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("volume_id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False, server_default=sa.text("''")),
        sa.Column("description", sa.Text),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("size_gib", sa.Integer, nullable=False),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("snapname", sa.String(40)),
        sa.Column("vmid", sa.Integer),
        sa.Column("volid", sa.String(255)),
        sa.Column("fault", sa.Text),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_volume_snapshots"),
    )
    op.create_index(
        "ix_volume_snapshots_project", "volume_snapshots", ["project_id", "created_at", "id"]
    )
    op.create_index("ix_volume_snapshots_volume_id", "volume_snapshots", ["volume_id"])


def _volume_types() -> None:
    op.create_table(
        "volume_types",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("is_public", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("storage", StorageName, nullable=False),
        sa.Column("extra_specs", Json, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_volume_types"),
        sa.UniqueConstraint("name", name="uq_volume_types_name"),
    )


def _volume_type_access() -> None:
    op.create_table(
        "volume_type_access",
        sa.Column("type_id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("type_id", "project_id", name="pk_volume_type_access"),
    )


def upgrade() -> None:
    """Add them."""
    _volumes()
    _volume_attachments()
    _volume_snapshots()
    _volume_types()
    _volume_type_access()


def downgrade() -> None:
    """Drop them. Volumes must be deleted before."""
    for table in (
        "volume_type_access",
        "volume_types",
        "volume_snapshots",
        "volume_attachments",
        "volumes",
    ):
        op.drop_table(table)
