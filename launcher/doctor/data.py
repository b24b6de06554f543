"""Databases: reachable, of this release, and each role with no more than it needs."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa
from oslo_config import cfg

from common.databases import fullness
from common.errors import Unavailable
from common.findings import Finding, Level
from common.process import timekeeping
from db import engine
from db.reads import cloud
from launcher import databases as both
from launcher.clocks import of_database

#: {code: remedy}; a database that doesn't answer is most often not running
_LINES = {
    "schema_differs": ("micronova db expand",),
    "database_unreachable": ("systemctl restart postgresql",),
}


#: backend → the extra of the package that brings its driver
_EXTRAS = {"postgresql": "postgresql", "mysql": "mysql", "mariadb": "mysql"}


def drivers(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield URLs that can't be read, and those whose driver isn't installed."""
    for option, url in urls(conf).items():
        problem = unusable(url)
        if problem is None:
            continue
        extra = _EXTRAS.get(url.partition("+")[0].partition(":")[0])
        line = f"pip install 'micronova[{extra}]'" if extra else f"# {option} = <URL>"
        why = "The services that use it don't start."
        yield Finding("driver_missing", Level.BROKEN, f"Database, {option}", problem, why, (line,))


def urls(conf: cfg.ConfigOpts) -> dict[str, str]:
    """Return {option: URL} of all databases that are configured."""
    found = {
        "[database] connection": conf.database.connection,
        "[database] reader_connection": conf.database.reader_connection,
        "[database] replica_connection": conf.database.replica_connection,
        "[placement_database] connection": conf.placement_database.connection,
    }
    return {option: url for option, url in found.items() if url}


def unusable(url: str) -> str | None:
    """Return why no engine can be made of a URL, without its password; None: one can."""
    try:
        sa.create_engine(url).dispose()
    except ImportError as error:
        return f"The module {error.name} isn't installed: the URL's driver needs it."
    except sa.exc.ArgumentError:
        return "Its URL names no database that there is a driver for."
    return None


def databases(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield databases that don't answer, or are of another release; without driver: none."""
    usable = tuple(name for name, url in both.urls(conf).items() if unusable(url) is None)
    for name, problem in both.check(conf, usable).items():
        if problem is None or fullness.refuses(problem):
            continue  # of a full disk: see `room`
        code = "database_unreachable" if "can't be read" in problem else "schema_differs"
        yield Finding(
            code,
            Level.BROKEN,
            f"Database {name}",
            f"It {problem}.",
            "The services that use it don't work.",
            _LINES[code],
        )


def room(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield databases whose disk is full: they can be read, and not changed."""
    for name, url in both.urls(conf).items():
        if unusable(url) is None and (folder := _full_disk(sa.make_url(url))):
            yield Finding(
                "database_full",
                Level.BROKEN,
                f"Database {name}",
                "Its disk is full: it can be read, and not changed.",
                "Clients get 503 for what changes something. Make room; nothing else is needed.",
                (f"df -h {shlex.quote(folder)}",),
            )


#: what is sorted takes more memory than may be used: it is written to the disk of the database,
#: and leaves nothing there
_SORT = (
    "SET LOCAL work_mem = '64kB'",
    "SELECT count(*) FROM (SELECT md5(n::text) AS text FROM generate_series(1, 20000) AS n "
    "ORDER BY 1 OFFSET 0) AS sorted",
)
#: where Debian's PostgreSQL has its data
_DATA = "/var/lib/postgresql"
#: SQLite's log grows so far before it is written to the file
_SQLITE_BYTES = 16 << 20


def _full_disk(url: sa.URL) -> str | None:
    """Return a folder on the full disk of a database; None: there is room, or it isn't known."""
    if url.get_backend_name() == "sqlite":
        folder = Path(url.database or ".").absolute().parent
        is_full = folder.exists() and shutil.disk_usage(folder).free < _SQLITE_BYTES
        return str(folder) if is_full else None
    if url.get_backend_name() != "postgresql":
        return None
    made = sa.create_engine(url)
    try:
        with made.connect() as connection:
            for statement in _SORT:
                connection.exec_driver_sql(statement)
    except sa.exc.DBAPIError as error:
        # what else is wrong is another check's
        return _DATA if fullness.is_full(error) else None
    finally:
        made.dispose()
    return None


def clocks(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield databases whose clock differs from this machine's; those that don't answer: none."""
    for option, url in urls(conf).items():
        if unusable(url) is not None:
            continue
        made = sa.create_engine(url)
        try:
            ask = of_database(made)
            found = None if ask is None else ask()
        except Unavailable:
            found = None  # another check says so
        finally:
            made.dispose()
        if found is None:
            continue
        off = time.time() - time.monotonic() - (found.seconds - found.at)
        if abs(off) > timekeeping.MUCH_SECONDS:
            yield _clock(option, off)


def _clock(option: str, off: float) -> Finding:
    broken = abs(off) > timekeeping.MOST_SECONDS
    why = "No service starts on this machine." if broken else "At 10 s no service starts any more."
    return Finding(
        "clock_of_machine",
        Level.BROKEN if broken else Level.WARNING,
        f"Database, {option}",
        f"This machine's clock is {timekeeping.differs(off)} the database's.",
        why,
        ("chronyc makestep",),
    )


def restored(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield that the cloud database was restored, and what follows is undecided."""
    url = conf.database.connection
    if not url or unusable(url) is not None or both.check(conf, ("cloud",)).get("cloud"):
        return  # said already
    reader = engine.reader(url, pool_size=1)
    try:
        with reader.connect() as connection:
            because = cloud.held_because(connection)
    finally:
        reader.dispose()
    if because is not None:
        yield Finding(
            "record_restored",
            Level.WARNING,
            "Database cloud",
            because,
            "Deletes, and all else that destroys, wait.",
            ("micronova restore --apply",),
        )


def roles(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield that the API's role can't read the cloud database, or may write to it."""
    url = conf.database.reader_connection
    if not url or not url.startswith("postgresql") or unusable(url) is not None:
        return
    made = sa.create_engine(url)
    grant = f"micronova db expand --reader-role {shlex.quote(str(sa.make_url(url).username))}"
    try:
        with made.connect() as connection:
            yield from _rights(connection, grant)
    except sa.exc.DBAPIError as error:
        yield Finding(
            "reader_refused",
            Level.BROKEN,
            "Database cloud",
            f"The API's role can't log in: {str(error.orig).strip().splitlines()[0]}.",
            "The APIs answer 503.",
            (grant,),
        )
    finally:
        made.dispose()


def _rights(connection: sa.Connection, grant: str) -> Iterator[Finding]:
    may = connection.exec_driver_sql(
        "SELECT has_table_privilege('servers', 'SELECT'), "
        "has_table_privilege('servers', 'INSERT') OR has_table_privilege('servers', 'UPDATE') "
        "OR has_table_privilege('servers', 'DELETE')"
    ).one()
    if not may[0]:
        yield Finding(
            "reader_blind",
            Level.BROKEN,
            "Database cloud",
            "The API's role may not read the tables.",
            "The APIs answer 503.",
            (grant,),
        )
    if may[1]:
        yield Finding(
            "reader_writes",
            Level.WARNING,
            "Database cloud",
            "The API's role may write.",
            "A flaw in an API could change the record past the conductor.",
            (grant,),
        )
