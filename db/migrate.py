"""Upgrade a cloud database, and check whether one is up to date."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa

from common.databases import migrations, revisions
from common.databases.migrations import Migrations, Phase
from common.databases.revisions import Chains, State
from common.errors import Unavailable
from db import engine
from db.schema import metadata

T = TypeVar("T")

MIGRATIONS = Migrations(Path(__file__).parent / "migrations", "cloud", metadata)

#: Upgrades that start together take turns. SQLite's writer begins as the only one anyway.
_LOCKS: Mapping[str, str] = {
    "postgresql": "SELECT pg_advisory_xact_lock(1835623283)",
    "mysql": "SELECT GET_LOCK('micronova.cloud', 600)",
    "mariadb": "SELECT GET_LOCK('micronova.cloud', 600)",
}


def upgrade(
    url: str, phases: Collection[Phase] = migrations.ALL, chains: Migrations = MIGRATIONS
) -> None:
    """Create or upgrade the tables at `url`: expand them, contract them, or both.

    May run at every start, and from several processes: it changes nothing that is up to date.
    Raises ConfigurationError for a database that another release made, and Unavailable when it
    doesn't answer.
    """
    writer = engine.writer(url, pool_size=1, standstill_seconds=None)
    try:
        with writer.begin() as connection:
            lock = _LOCKS.get(connection.dialect.name)
            if lock is not None:
                connection.exec_driver_sql(lock)
            chains.run(connection, phases)
    except sa.exc.OperationalError as error:
        raise Unavailable(f"The cloud database doesn't answer: {_reason(error)}") from error
    finally:
        writer.dispose()


def known() -> Chains:
    """Return the revisions of this release."""
    return MIGRATIONS.known()


def head() -> str:
    """Return the revision that this release needs."""
    return known().expanding[-1]


def current(url: str) -> str | None:
    """Return the revision of the database at `url`; None: it is empty. Changes nothing.

    Raises Unavailable when it doesn't answer.
    """
    return state(url).expanded


def state(url: str) -> State:
    """Return how far the database at `url` is. Changes nothing.

    Raises Unavailable when it doesn't answer.
    """
    return read(url, MIGRATIONS.state) if migrations.is_made(url) else State(None)


def read(url: str, look: Callable[[sa.Connection], T]) -> T:
    """Return what is read at `url`. Raises Unavailable when it doesn't answer."""
    reader = engine.reader(url, pool_size=1)
    try:
        with reader.connect() as connection:
            return look(connection)
    except sa.exc.OperationalError as error:
        raise Unavailable(f"The cloud database doesn't answer: {_reason(error)}") from error
    finally:
        reader.dispose()


def check(url: str) -> str | None:
    """Return why the database at `url` can't be used, or None; continues a sentence."""
    try:
        return revisions.problem(state(url), known())
    except Unavailable as error:
        return f"can't be read: {error.message}"


def _reason(error: sa.exc.OperationalError) -> str:
    """Return the driver's message, without the statement and its values."""
    return str(error.orig).strip().partition("\n")[0]
