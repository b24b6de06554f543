"""Expand: servers whose VM's firewall must still be made what is wanted.

Revision ID: 0025_filter_changes
Revises: 0024_security_groups
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import UtcDateTime

revision = "0025_filter_changes"
down_revision: str | None = "0024_security_groups"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "filter_changes",
        sa.Column("server_uuid", sa.String(36), primary_key=True),
        sa.Column("token", sa.String(36), nullable=False),
        sa.Column("not_before", UtcDateTime, nullable=False),
    )
    op.create_index("ix_filter_changes_not_before", "filter_changes", ["not_before"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("filter_changes")
