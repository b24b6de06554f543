"""Expand: what conductors answered, so that a call that is repeated is answered the same."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from db.types import UtcDateTime

revision = "r0004_call_answers"
down_revision: str | None = "r0003_activity"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "call_answers",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("answer", sa.Text()),
        sa.Column("answered_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_call_answers"),
    )
    op.create_index("ix_call_answers_answered_at", "call_answers", ["answered_at"])
