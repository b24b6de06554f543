"""Bring a placement database up to date: tables by alembic, then the standard names."""

from __future__ import annotations

import threading
from pathlib import Path

import os_resource_classes
import os_traits
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection

from common.databases import revisions
from common.errors import ConfigurationError
from placement.db import schema, sequence
from placement.db.engine import Database

#: the key of the lock that upgrades of one PostgreSQL server take turns by
_LOCK = 0x706C6163
_LOCK_SECONDS = 60
#: alembic stores its current context in a module, so one thread at a time may use it
_turn = threading.Lock()


def upgrade(url: str, revision: str = "head") -> None:
    """Create or upgrade the tables at `url` and add the standard traits and classes.

    May run at every start, and from several processes: it changes nothing that is up to date.
    Raises ConfigurationError for a database that another release made, and Unavailable when it
    doesn't answer.
    """
    database = Database(url, connections=1, foreign_keys=False)
    try:
        with _turn:
            database.write(lambda connection: _migrate(connection, revision))
    finally:
        database.close()


def check(url: str) -> str | None:
    """Return why the database at `url` can't be used, or None; continues a sentence.

    Changes nothing. Raises Unavailable when the database doesn't answer.
    """
    database = Database(url, connections=1)
    try:
        return revisions.problem(database.read(_current), *_revisions())
    finally:
        database.close()


def _current(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def head() -> str:
    """Return the revision that this release needs."""
    return _revisions()[0]


def _revisions() -> tuple[str, set[str]]:
    """Return the revision that this release needs, and all that it knows."""
    scripts = ScriptDirectory.from_config(_config())
    return str(scripts.get_current_head()), {one.revision for one in scripts.walk_revisions()}


def _migrate(connection: Connection, revision: str) -> None:
    # Two processes that start together must not both create the tables.
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    elif connection.dialect.name == "mysql":
        connection.execute(sa.select(sa.func.get_lock(str(_LOCK), _LOCK_SECONDS)))
    refused = revisions.refusal(_current(connection), *_revisions())
    if refused is not None:
        raise ConfigurationError(f"The placement database {refused}.")
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
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


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


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
