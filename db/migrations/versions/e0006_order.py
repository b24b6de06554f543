"""Contract: a decision keeps the order of its filters and hosts, which JSONB doesn't.

Revision ID: 0006_order
Revises: 0005_explained
"""

from __future__ import annotations

from alembic import op

revision = "0006_order"
down_revision: str | None = "0005_explained"


def upgrade() -> None:
    """Make the body JSON on PostgreSQL. Present rows stay in JSONB's order."""
    _on_postgresql("ALTER TABLE decisions ALTER COLUMN body TYPE JSON USING body::json")


def downgrade() -> None:
    """Make it JSONB again."""
    _on_postgresql("ALTER TABLE decisions ALTER COLUMN body TYPE JSONB USING body::jsonb")


def _on_postgresql(statement: str) -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(statement)
