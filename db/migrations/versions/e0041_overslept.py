"""Expand: operations whose deadline passed while no conductor ran.

Revision ID: 0041_overslept
Revises: 0040_quota_resources
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0041_overslept"
down_revision: str | None = "0040_quota_resources"


def upgrade() -> None:
    """Add the column; open operations are as before."""
    op.add_column(
        "operations",
        sa.Column("overslept", sa.Boolean, nullable=False, server_default=sa.false()),
    )


def downgrade() -> None:
    """Drop the column."""
    with op.batch_alter_table("operations") as batch:
        batch.drop_column("overslept")
