"""Expand: what the owner of a server reads of a fault, where it is more than its category says.

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
