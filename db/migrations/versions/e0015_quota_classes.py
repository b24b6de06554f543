"""Expand: limits of quota classes, of which "default" holds for all projects.

Revision ID: 0015_quota_classes
Revises: 0014_stages
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015_quota_classes"
down_revision: str | None = "0014_stages"


def upgrade() -> None:
    """Add the table; without a row the configured defaults hold."""
    op.create_table(
        "quota_classes",
        sa.Column("class_name", sa.String(255), primary_key=True),
        sa.Column("resource", sa.String(64), primary_key=True),
        sa.Column("hard_limit", sa.Integer, nullable=False),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("quota_classes")
