"""Expand: find operations by who asked for them."""

from __future__ import annotations

from alembic import op

revision = "r0003_activity"
down_revision: str | None = "r0002_member_ports"


def upgrade() -> None:
    """Add the indexes."""
    op.create_index("ix_operations_project", "operations", ["project_id", "id"])
    op.create_index("ix_operations_user", "operations", ["user_id", "id"])
