"""Bring a placement database up to date: tables by alembic, then the standard names."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import os_resource_classes
import os_traits
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from common.databases import migrations, revisions
from common.databases.migrations import Migrations, Phase
from common.databases.revisions import Chains, State
from placement.db import schema, sequence
from placement.db.engine import Database

#: the key of the lock that upgrades of one PostgreSQL server take turns by
_LOCK = 0x706C6163
_LOCK_SECONDS = 60

MIGRATIONS = Migrations(Path(__file__).parent / "migrations", "placement", schema.metadata)


def upgrade(
    url: str, phases: Collection[Phase] = migrations.ALL, chains: Migrations = MIGRATIONS
) -> None:
    """Create or upgrade the tables at `url`: expand them, contract them, or both.

    Adds the standard traits and classes, too. May run at every start, and from several processes:
    it changes nothing that is up to date. Raises ConfigurationError for a database that another
    release made, and Unavailable when it doesn't answer.
    """
    database = Database(url, connections=1, foreign_keys=False)
    try:
        database.write(lambda connection: _migrate(connection, phases, chains))
    finally:
        database.close()


def check(url: str) -> str | None:
    """Return why the database at `url` can't be used, or None; continues a sentence.

    Changes nothing. Raises Unavailable when the database doesn't answer.
    """
    return revisions.problem(state(url), known())


def state(url: str) -> State:
    """Return how far the database at `url` is. Raises Unavailable when it doesn't answer."""
    if not migrations.is_made(url):
        return State(None)
    database = Database(url, connections=1)
    try:
        return database.read(MIGRATIONS.state)
    finally:
        database.close()


def known() -> Chains:
    """Return the revisions of this release."""
    return MIGRATIONS.known()


def head() -> str:
    """Return the revision that this release needs."""
    return known().expanding[-1]


def _migrate(connection: Connection, phases: Collection[Phase], chains: Migrations) -> None:
    # Two processes that start together must not both create the tables.
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    elif connection.dialect.name == "mysql":
        connection.execute(sa.select(sa.func.get_lock(str(_LOCK), _LOCK_SECONDS)))
    chains.run(connection, phases)
    _check_foreign_keys(connection)
    add_standard_names(connection)


def _check_foreign_keys(connection: Connection) -> None:
    """Raise RuntimeError, so that the upgrade is taken back, for a row that refers to none.

    SQLite alters a table by recreating it. Foreign keys must be off during that: otherwise the
    rows that refer to the old table's rows would be deleted.
    """
    if connection.dialect.name == "sqlite":
        for row in connection.exec_driver_sql("PRAGMA foreign_key_check"):
            raise RuntimeError(f"the upgrade leaves a row without what it refers to: {row}")


def add_standard_names(connection: Connection) -> None:
    """Add the traits and resource classes of os-traits and os-resource-classes not there yet."""
    now = sequence.seconds()
    added = False
    for table, names in (
        (schema.resource_classes, os_resource_classes.STANDARDS),
        (schema.traits, sorted(os_traits.get_traits())),
    ):
        there = set(connection.scalars(sa.select(table.c.name)))
        missing = [{"name": name, "created_at": now} for name in names if name not in there]
        if missing:
            connection.execute(sa.insert(table), missing)
            added = True
    if added:
        sequence.names_changed(connection)
