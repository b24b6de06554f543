"""Upgrade a cloud database, and check whether one is up to date."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
import tenacity

from common.databases import migrations, revisions
from common.databases.migrations import Migrations, Phase
from common.databases.revisions import Chains, State
from common.errors import Unavailable
from common.log import logger
from db import engine
from db.schema import metadata

LOG = logger(__name__)

T = TypeVar("T")

MIGRATIONS = Migrations(Path(__file__).parent / "migrations", "cloud", metadata)

#: Upgrades that start together take turns. SQLite's writer begins as the only one anyway.
_LOCKS: Mapping[str, str] = {
    "postgresql": "SELECT pg_advisory_xact_lock(1835623283)",
    "mysql": "SELECT GET_LOCK('micronova.cloud', 600)",
    "mariadb": "SELECT GET_LOCK('micronova.cloud', 600)",
}


@dataclass(frozen=True)
class Patience:
    """How tables that are in use on PostgreSQL are waited for, as by a dump that runs."""

    lock_seconds: float = 2.0
    """All that comes after a change of a table waits with it: so it gives up, and tries again."""
    pause_seconds: float = 3.0
    tries: int = 60

    def attempts(self) -> tenacity.Retrying:
        """Return attempts until no table is in use; the error of the last one passes."""
        return tenacity.Retrying(
            retry=tenacity.retry_if_exception(_is_in_use),
            stop=tenacity.stop_after_attempt(self.tries),
            wait=tenacity.wait_fixed(self.pause_seconds),
            before_sleep=_log,
            reraise=True,
        )


def upgrade(
    url: str,
    phases: Collection[Phase] = migrations.ALL,
    chains: Migrations = MIGRATIONS,
    patience: Patience | None = None,
) -> None:
    """Create or upgrade the tables at `url`: expand them, contract them, or both.

    May run at every start, and from several processes: it changes nothing that is up to date.
    Raises ConfigurationError for a database that another release made, and Unavailable when it
    doesn't answer, or its tables remain in use.
    """
    patience = patience or Patience()
    writer = engine.writer(url, pool_size=1, standstill_seconds=None)
    try:
        for attempt in patience.attempts():
            with attempt, writer.begin() as connection:
                _run(connection, phases, chains, patience)
    except sa.exc.OperationalError as error:
        why = "tables are in use, as by a dump that runs; try again"
        problem = f"'s {why}" if _is_in_use(error) else " doesn't answer"
        raise Unavailable(f"The cloud database{problem}: {_reason(error)}") from error
    finally:
        writer.dispose()


def _is_in_use(error: BaseException) -> bool:
    """Return whether a table is: a lock was waited for too long, or there was a deadlock."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) in ("55P03", "40P01")


def _log(state: tenacity.RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    LOG.warning("A table is in use; trying again: %s", _reason(error))


def _run(
    connection: sa.Connection, phases: Collection[Phase], chains: Migrations, patience: Patience
) -> None:
    """Do it once those that began before are done."""
    lock = _LOCKS.get(connection.dialect.name)
    if lock is not None:
        connection.exec_driver_sql(lock)
    if connection.dialect.name == "postgresql":
        milliseconds = int(patience.lock_seconds * 1000)
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {milliseconds}")
    chains.run(connection, phases)


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


def _reason(error: BaseException | None) -> str:
    """Return the driver's message, without the statement and its values."""
    return str(getattr(error, "orig", error)).strip().partition("\n")[0]
