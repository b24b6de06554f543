"""Expand: no internal ID is used twice; SQLite reused that of the row deleted last."""

from __future__ import annotations

from alembic import op

revision = "e0002"
down_revision = "e0001"
branch_labels = None
depends_on = None

_TABLES = ("resource_providers", "traits", "resource_classes", "consumers")
#: a provider that is there was not removed: another one that had its ID was
_MEND = "DELETE FROM removed_providers WHERE provider_id IN (SELECT id FROM resource_providers)"
#: IDs continue after the last recorded one, even if its provider is gone
_GO_ON = (
    "DELETE FROM sqlite_sequence WHERE name = 'resource_providers'",
    "INSERT INTO sqlite_sequence (name, seq) SELECT 'resource_providers', max("
    "(SELECT coalesce(max(id), 0) FROM resource_providers),"
    " (SELECT coalesce(max(provider_id), 0) FROM removed_providers))",
)


def upgrade() -> None:
    """Repair what has happened, and have SQLite count the IDs."""
    if op.get_bind().dialect.name == "sqlite":
        for table in _TABLES:
            _count_ids(table)
        for statement in _GO_ON:
            op.execute(statement)
    op.execute(_MEND)


def _count_ids(table: str) -> None:
    """Recreate the table with its rows: SQLite can't alter a key."""
    kept = {"sqlite_autoincrement": True}
    with op.batch_alter_table(table, recreate="always", table_kwargs=kept):
        pass
