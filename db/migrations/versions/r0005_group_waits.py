"""Expand: scaling_groups.default_wait_seconds, which groups of the release before have not."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0005_group_waits"
down_revision: str | None = "r0004_call_answers"


def upgrade() -> None:
    """Add it."""
    op.add_column("scaling_groups", sa.Column("default_wait_seconds", sa.Integer()))
