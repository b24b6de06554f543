"""Expand: the MD5 of what users upload, which Glance shows as the checksum.

Revision ID: 0028_uploads
Revises: 0027_user_images
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028_uploads"
down_revision: str | None = "0027_user_images"


def upgrade() -> None:
    """Add it; of images that there are it isn't known."""
    op.add_column("images", sa.Column("md5", sa.String(32)))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("images", "md5")
