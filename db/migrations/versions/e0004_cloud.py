"""Expand: the id of this cloud.

Revision ID: 0004_cloud
Revises: 0003_audit
"""

from __future__ import annotations

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0004_cloud"
down_revision: str | None = "0003_audit"


def upgrade() -> None:
    """Add the table with its one row."""
    table = op.create_table(
        "cloud_identity",
        sa.Column("id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("cloud_id", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_cloud_identity"),
    )
    op.bulk_insert(table, [{"id": 1, "cloud_id": str(uuid.uuid4())}])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("cloud_identity")
