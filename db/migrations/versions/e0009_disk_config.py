"""Expand: the disk configuration that a server was created with.

Revision ID: 0009_disk_config
Revises: 0008_refused
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009_disk_config"
down_revision: str | None = "0008_refused"


def upgrade() -> None:
    """Add the column; existing servers show MANUAL, as they always did."""
    column = sa.Column("auto_disk_config", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("servers", column)


def downgrade() -> None:
    """Drop it."""
    op.drop_column("servers", "auto_disk_config")
