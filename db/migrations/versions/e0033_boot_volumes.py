"""Expand: volumes that are made with a server, until its build has ended.

Revision ID: 0033_boot_volumes
Revises: 0032_volume_snapshots
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033_boot_volumes"
down_revision: str | None = "0032_volume_snapshots"


def upgrade() -> None:
    """Add it."""
    column = sa.Column("with_build", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("volume_attachments", column)


def downgrade() -> None:
    """Drop it. No server may be built with volumes at the time."""
    op.drop_column("volume_attachments", "with_build")
