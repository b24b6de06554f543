"""Expand: the tag of a server's root disk, which its guest reads.

Revision ID: 0020_disk_tag
Revises: 0019_server_images
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020_disk_tag"
down_revision: str | None = "0019_server_images"


def upgrade() -> None:
    """Add the column."""
    op.add_column("servers", sa.Column("disk_tag", sa.String(60)))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("servers", "disk_tag")
