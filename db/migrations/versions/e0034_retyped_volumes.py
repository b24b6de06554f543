"""Expand: volumes that are moved to the storage of another type.

Revision ID: 0034_retyped_volumes
Revises: 0033_boot_volumes
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import StorageName

revision = "0034_retyped_volumes"
down_revision: str | None = "0033_boot_volumes"

_COLUMNS = (
    ("new_type_id", sa.String(36)),
    ("new_storage", StorageName),
    ("new_shared", sa.Boolean()),
)


def upgrade() -> None:
    """Add what they are to get."""
    for name, kind in _COLUMNS:
        op.add_column("volumes", sa.Column(name, kind))


def downgrade() -> None:
    """Drop it. No volume may be retyped at the time."""
    for name, _ in _COLUMNS:
        op.drop_column("volumes", name)
