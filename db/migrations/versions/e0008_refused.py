"""Expand: VMIDs that others had already, and when the audit last read a VM's description.

Revision ID: 0008_refused
Revises: 0007_owners
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import UtcDateTime

revision = "0008_refused"
down_revision: str | None = "0007_owners"


def upgrade() -> None:
    """Add the columns. Earlier refusals are not known."""
    op.add_column(
        "vmid_journal",
        sa.Column("refused", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.add_column("vmids", sa.Column("read_at", UtcDateTime))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("vmids", "read_at")
    op.drop_column("vmid_journal", "refused")
