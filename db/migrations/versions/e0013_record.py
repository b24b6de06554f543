"""Expand: who locked a server and why, and its access addresses.

Revision ID: 0013_record
Revises: 0012_resources
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013_record"
down_revision: str | None = "0012_resources"

_COLUMNS = {
    "locked_by": sa.String(16),
    "locked_reason": sa.String(255),
    "access_ip_v4": sa.String(39),
    "access_ip_v6": sa.String(39),
}


def upgrade() -> None:
    """Add the columns; no server so far is locked or has an access address."""
    for name, kind in _COLUMNS.items():
        op.add_column("servers", sa.Column(name, kind))


def downgrade() -> None:
    """Drop them."""
    for name in _COLUMNS:
        op.drop_column("servers", name)
