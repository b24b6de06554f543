"""Expand: places in the change sequence instead of one counter for all."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "e0002"
down_revision = "e0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Remember up to where removals are forgotten, and which database this is."""
    with op.batch_alter_table("changes") as changes:
        changes.add_column(
            sa.Column("pruned_at", sa.BigInteger, nullable=False, server_default="0")
        )
        changes.drop_column("structure_at")
    op.execute("INSERT INTO changes (id, value, names_at, pruned_at) VALUES (2, 0, 0, 0)")
    if op.get_bind().dialect.name == "postgresql":
        # Counted places would look like transactions still to come.
        for table in ("resource_providers", "inventories", "removed_providers"):
            op.execute(f"UPDATE {table} SET changed = 0")
