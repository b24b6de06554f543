"""Expand: metadata definitions, as Glance has them.

Revision ID: 0044_metadefs
Revises: 0043_volume_records
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import Json, UtcDateTime

revision = "0044_metadefs"
down_revision: str | None = "0043_volume_records"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "metadef_namespaces",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("name", sa.String(80), nullable=False, unique=True),
        sa.Column("display_name", sa.String(80)),
        sa.Column("description", sa.String(500)),
        sa.Column("visibility", sa.String(16), nullable=False),
        sa.Column("protected", sa.Boolean, nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
    )
    op.create_table(
        "metadef_items",
        sa.Column("namespace_id", sa.String(36), primary_key=True),
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("name", sa.String(80), primary_key=True),
        sa.Column("body", Json, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
    )


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("metadef_items")
    op.drop_table("metadef_namespaces")
