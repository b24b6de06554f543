"""Expand: refused requests, and since when details of operations are deleted.

Revision ID: 0005_explained
Revises: 0004_cloud
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import BigId, Json, UtcDateTime

revision = "0005_explained"
down_revision: str | None = "0004_cloud"


def upgrade() -> None:
    """Add the table and the column."""
    op.add_column("operations", sa.Column("forgotten_at", UtcDateTime))
    op.create_table(
        "refusals",
        sa.Column("id", BigId, nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("global_request_id", sa.String(64)),
        sa.Column("method", sa.String(16), nullable=False),
        sa.Column("path", sa.String(255), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("details", Json, nullable=False),
        sa.Column("of_admin", sa.Boolean(), nullable=False),
        sa.Column("received_at", UtcDateTime, nullable=False),
        sa.Column("answered_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_refusals"),
    )
    op.create_index("ix_refusals_request_id", "refusals", ["request_id"])
    op.create_index("ix_refusals_global_request_id", "refusals", ["global_request_id"])
    op.create_index("ix_refusals_project", "refusals", ["project_id", "id"])
    op.create_index("ix_refusals_answered_at", "refusals", ["answered_at"])


def downgrade() -> None:
    """Drop them."""
    op.drop_column("operations", "forgotten_at")
    op.drop_table("refusals")
