"""Expand: images that users make, who sees images, and the projects that they are shared with.

Revision ID: 0027_user_images
Revises: 0026_port_addresses
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import Json, UtcDateTime

revision = "0027_user_images"
down_revision: str | None = "0026_port_addresses"

_BARE = sa.text("'bare'")


def _columns() -> tuple[sa.Column[object], ...]:
    return (
        sa.Column("container_format", sa.String(16), nullable=False, server_default=_BARE),
        sa.Column("visibility", sa.String(16)),
        sa.Column("protected", sa.Boolean),
        sa.Column("hidden", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("tags", Json),
    )


def upgrade() -> None:
    """Add them; who sees the images that there are follows from their owner, as before."""
    for column in _columns():
        op.add_column("images", column)
    op.create_index("ix_images_project_id", "images", ["project_id"])
    op.create_table(
        "image_members",
        sa.Column("image_id", sa.String(36), primary_key=True),
        sa.Column("member", sa.String(255), primary_key=True),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("image_members")
    op.drop_index("ix_images_project_id", "images")
    for column in _columns():
        op.drop_column("images", column.name)
