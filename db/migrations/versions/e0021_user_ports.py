"""Expand: ports that users make, which stay when their server goes.

Revision ID: 0021_user_ports
Revises: 0020_disk_tag
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import UtcDateTime

revision = "0021_user_ports"
down_revision: str | None = "0020_disk_tag"


def upgrade() -> None:
    """Add the columns; the ports that there are were made for servers."""
    op.add_column(
        "ports", sa.Column("name", sa.String(255), nullable=False, server_default=sa.text("''"))
    )
    op.add_column(
        "ports",
        sa.Column("description", sa.String(255), nullable=False, server_default=sa.text("''")),
    )
    op.add_column(
        "ports", sa.Column("kept", sa.Boolean, nullable=False, server_default=sa.false())
    )
    op.add_column("ports", sa.Column("updated_at", UtcDateTime))


def downgrade() -> None:
    """Drop them."""
    for name in ("updated_at", "kept", "description", "name"):
        op.drop_column("ports", name)
