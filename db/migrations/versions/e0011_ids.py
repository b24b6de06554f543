"""Expand: no ID is used twice; SQLite reused that of the row deleted last.

Revision ID: 0011_ids
Revises: 0010_secrets
"""

from __future__ import annotations

from alembic import op

revision = "0011_ids"
down_revision: str | None = "0010_secrets"

_TABLES = (
    "servers",
    "operations",
    "transitions",
    "faults",
    "refusals",
    "vmid_journal",
    "flavors",
    "keypairs",
    "services",
    "hosts",
    "aggregates",
    "server_groups",
    "audits",
    "findings",
)


def upgrade() -> None:
    """Have SQLite count the IDs: it can't alter a key, so tables are recreated with their rows."""
    _make_anew(counting=True)


def downgrade() -> None:
    """Recreate them without counting."""
    _make_anew(counting=False)


def _make_anew(*, counting: bool) -> None:
    if op.get_bind().dialect.name != "sqlite":
        return
    options = {"sqlite_autoincrement": counting}
    for table in _TABLES:
        with op.batch_alter_table(table, recreate="always", table_kwargs=options):
            pass
