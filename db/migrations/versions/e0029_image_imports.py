"""Expand: what is known of an image's import.

Revision ID: 0029_image_imports
Revises: 0028_uploads
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import Json

revision = "0029_image_imports"
down_revision: str | None = "0028_uploads"


def upgrade() -> None:
    """Add it: no image is being imported yet."""
    op.add_column("images", sa.Column("import_task", Json))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("images", "import_task")
