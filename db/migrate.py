"""Upgrade a cloud database, and check whether one is up to date."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import make_url

from common.databases import revisions
from common.errors import ConfigurationError, Unavailable
from db import engine

#: Upgrades that start together take turns. SQLite's writer begins as the only one anyway.
_LOCKS: Mapping[str, str] = {
    "postgresql": "SELECT pg_advisory_xact_lock(1835623283)",
    "mysql": "SELECT GET_LOCK('micronova.cloud', 600)",
    "mariadb": "SELECT GET_LOCK('micronova.cloud', 600)",
}


def upgrade(url: str, revision: str = "head") -> None:
    """Create or upgrade the tables at `url`, up to `revision`.

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
            found = MigrationContext.configure(connection).get_current_revision()
            refused = revisions.refusal(found, head(), _known())
            if refused is not None:
                raise ConfigurationError(f"The cloud database {refused}.")
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
    except sa.exc.OperationalError as error:
        raise Unavailable(f"The cloud database doesn't answer: {_reason(error)}") from error
    finally:
        writer.dispose()


def head() -> str:
    """Return the revision that this release needs."""
    found = ScriptDirectory.from_config(_config()).get_current_head()
    if found is None:
        raise RuntimeError("the package holds no revision")
    return found


def current(url: str) -> str | None:
    """Return the revision of the database at `url`; None: it is empty. Changes nothing.

    Raises Unavailable when it doesn't answer.
    """
    address = make_url(url)
    file = address.database if address.get_backend_name() == "sqlite" else None
    if file is not None and not Path(file).exists():
        return None  # to connect would make it
    reader = engine.reader(url, pool_size=1)
    try:
        with reader.connect() as connection:
            return MigrationContext.configure(connection).get_current_revision()
    except sa.exc.OperationalError as error:
        raise Unavailable(f"The cloud database doesn't answer: {_reason(error)}") from error
    finally:
        reader.dispose()


def check(url: str) -> str | None:
    """Return why the database at `url` can't be used, or None; continues a sentence."""
    try:
        return revisions.problem(current(url), head(), _known())
    except Unavailable as error:
        return f"can't be read: {error.message}"


def _known() -> set[str]:
    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def _reason(error: sa.exc.OperationalError) -> str:
    """Return the driver's message, without the statement and its values."""
    return str(error.orig).strip().partition("\n")[0]
