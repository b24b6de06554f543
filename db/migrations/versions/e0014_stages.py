"""Expand: an operation names the stage that it reached.

The release before neither writes nor reads it: its operations go on by their task_state.

Revision ID: 0014_stages
Revises: 0013_record
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014_stages"
down_revision: str | None = "0013_record"


def upgrade() -> None:
    """Add the name of the stage; empty, as it is so far: what the task_state says counts."""
    op.add_column("operations", sa.Column("stage", sa.String(64), nullable=True))


def downgrade() -> None:
    """Remove it."""
    with op.batch_alter_table("operations") as batch:
        batch.drop_column("stage")
