"""Expand: the tags of interfaces, which guests read.

Revision ID: 0018_port_tags
Revises: 0017_console_tokens
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018_port_tags"
down_revision: str | None = "0017_console_tokens"


def upgrade() -> None:
    """Add the column."""
    op.add_column("ports", sa.Column("tag", sa.String(60)))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("ports", "tag")
