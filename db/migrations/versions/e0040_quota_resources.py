"""Expand: limits of volume types whose names are long.

Revision ID: 0040_quota_resources
Revises: 0039_usage_audits
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0040_quota_resources"
down_revision: str | None = "0039_usage_audits"

_TABLES = ("quota_limits", "quota_classes")
_BEFORE, _AFTER = sa.String(64), sa.String(300)


def upgrade() -> None:
    """Make room for a type's name."""
    for table in _TABLES:
        with op.batch_alter_table(table) as batch:
            batch.alter_column(
                "resource", existing_type=_BEFORE, existing_nullable=False, type_=_AFTER
            )


def downgrade() -> None:
    """Forget the limits that don't fit."""
    for table in _TABLES:
        resource: sa.ColumnClause[str] = sa.column("resource")
        op.execute(sa.table(table, resource).delete().where(sa.func.length(resource) > 64))
        with op.batch_alter_table(table) as batch:
            batch.alter_column(
                "resource", existing_type=_AFTER, existing_nullable=False, type_=_BEFORE
            )
