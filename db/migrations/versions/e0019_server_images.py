"""Expand: images made of servers, which have an owner.

Revision ID: 0019_server_images
Revises: 0018_port_tags
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import Json

revision = "0019_server_images"
down_revision: str | None = "0018_port_tags"


def upgrade() -> None:
    """Add the columns; images that there are have no owner."""
    op.add_column("images", sa.Column("project_id", sa.String(255)))
    op.add_column("images", sa.Column("server_uuid", sa.String(36)))
    op.add_column("images", sa.Column("home", Json))
    op.create_index("ix_images_server_uuid", "images", ["server_uuid"])


def downgrade() -> None:
    """Drop them."""
    op.drop_index("ix_images_server_uuid", "images")
    op.drop_column("images", "home")
    op.drop_column("images", "server_uuid")
    op.drop_column("images", "project_id")
