"""Expand: an operation names the resource that it is about, which need not be a server.

The previous release continues to write and read ``server_uuid`` only.

Revision ID: 0012_resources
Revises: 0011_ids
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012_resources"
down_revision: str | None = "0011_ids"


def upgrade() -> None:
    """Add type and id of the resource; every operation so far is about a server."""
    kind = sa.Column("resource_type", sa.String(32), nullable=False, server_default="server")
    op.add_column("operations", kind)
    op.add_column("operations", sa.Column("resource_id", sa.String(255), nullable=True))
    op.execute("UPDATE operations SET resource_id = server_uuid")
    columns = ["resource_type", "resource_id", "id"]
    op.create_index("ix_operations_resource", "operations", columns)


def downgrade() -> None:
    """Remove both; delete operations about anything but a server."""
    op.execute("DELETE FROM operations WHERE resource_type <> 'server'")
    op.drop_index("ix_operations_resource", "operations")
    with op.batch_alter_table("operations") as batch:
        batch.drop_column("resource_id")
        batch.drop_column("resource_type")
