"""Expand: a fault's text for the server's owner, where it says more than its category.

Revision ID: 0007_owners
Revises: 0006_order
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007_owners"
down_revision: str | None = "0006_order"


def upgrade() -> None:
    """Add the column."""
    op.add_column("faults", sa.Column("owner_message", sa.Text))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("faults", "owner_message")
