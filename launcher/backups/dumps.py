"""Dumps of one database, and how one is loaded: SQLite by its backup interface, PostgreSQL by
``pg_dump`` and ``pg_restore``, with the connection in their environment: no password is on a
command line."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from sqlalchemy.engine import URL, make_url

from common.errors import ConfigurationError

#: libpq's variables, by what a URL calls it
_OPTIONS: Mapping[str, str] = {
    "host": "PGHOST",
    "port": "PGPORT",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
    "connect_timeout": "PGCONNECT_TIMEOUT",
}
#: libpq takes no longer than this to say that nobody answers
_CONNECT_SECONDS = "10"
#: how long SQLite waits for a writer
_BUSY_SECONDS = 60.0


def dump(url: str, file: Path) -> None:
    """Write a dump of the database at ``url``, as it was at one moment. Raises
    ConfigurationError with the reason.
    """
    address = make_url(url)
    if _is_sqlite(address):
        _copy(_file(address), file)
    else:
        _run(address, "pg_dump", "--format=custom", "--no-owner", f"--file={file}")
    file.chmod(0o600)


def load(url: str, file: Path) -> str | None:
    """Replace the database at ``url`` by a dump, all of it or nothing.

    Return where its former content is now, where that is kept. Raises ConfigurationError.
    """
    address = make_url(url)
    if not _is_sqlite(address):
        _run(
            address,
            *("pg_restore", "--clean", "--if-exists", "--no-owner", "--exit-on-error"),
            *("--single-transaction", f"--dbname={address.database or ''}", str(file)),
        )
        return None
    target = _file(address)
    former = _set_aside(target)
    made = target.with_name(f"{target.name}.new")
    made.unlink(missing_ok=True)
    _copy(file, made)
    made.chmod(0o600)
    made.replace(target)
    return None if former is None else str(former)


def _is_sqlite(address: URL) -> bool:
    """Return whether it is SQLite's. Raises ConfigurationError for what can't be dumped."""
    backend = address.get_backend_name()
    if backend not in ("sqlite", "postgresql"):
        raise ConfigurationError(
            f"A {backend} database is not dumped by micronova: use its own tool, with one "
            "transaction for all tables (mariadb-dump --single-transaction)."
        )
    return backend == "sqlite"


def _file(address: URL) -> Path:
    if not address.database:
        raise ConfigurationError("A database in memory can't be backed up.")
    return Path(address.database)


def _copy(source: Path, target: Path) -> None:
    """Copy a SQLite database, even while it is written to, and see that it is sound."""
    if not source.exists():
        raise ConfigurationError(f"There is no database {source}.")
    try:
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as old,
            closing(sqlite3.connect(target, timeout=_BUSY_SECONDS)) as new,
        ):
            old.backup(new)
            # One file: what it holds isn't in a log beside it.
            new.execute("PRAGMA journal_mode=DELETE")
            (sound,) = new.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise ConfigurationError(f"{source} can't be copied: {error}.") from error
    if sound != "ok":
        raise ConfigurationError(f"{source} is damaged: {sound}.")


def _set_aside(target: Path) -> Path | None:
    """Rename a database with its log, which belongs to it; return its new name."""
    if not target.exists():
        return None
    number = 1
    while (former := target.with_name(f"{target.name}.replaced{number}")).exists():
        number += 1
    # Its log is written into it first: then it is one file.
    with closing(sqlite3.connect(target, timeout=_BUSY_SECONDS)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    target.rename(former)
    for suffix in ("-wal", "-shm"):
        Path(f"{target}{suffix}").unlink(missing_ok=True)
    return former


def _run(address: URL, program: str, *arguments: str) -> None:
    if shutil.which(program) is None:
        raise ConfigurationError(
            f"{program} is not installed: install the package postgresql-client."
        )
    done = subprocess.run(  # noqa: S603 - a program of ours, and no shell
        [program, *arguments],
        env=_environment(address),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise ConfigurationError(f"{program}: {said[0]}")


def _environment(address: URL) -> dict[str, str]:
    """Return the environment in which libpq finds the connection of a URL."""
    found = {"PGCONNECT_TIMEOUT": _CONNECT_SECONDS}
    for name, value in address.query.items():
        if name in _OPTIONS:
            found[_OPTIONS[name]] = value if isinstance(value, str) else ",".join(value)
    if isinstance(hosts := address.query.get("host"), tuple) or (hosts and ":" in str(hosts)):
        # SQLAlchemy's form of several: host=a:5432&host=b:5432
        several = [one.partition(":") for one in ([hosts] if isinstance(hosts, str) else hosts)]
        found.setdefault("PGTARGETSESSIONATTRS", "read-write")
        found["PGHOST"] = ",".join(one[0] for one in several)
        found["PGPORT"] = ",".join(one[2] or "5432" for one in several)
    plain = {
        "PGHOST": address.host,
        "PGPORT": None if address.port is None else str(address.port),
        "PGUSER": address.username,
        "PGDATABASE": address.database,
        "PGPASSWORD": None if address.password is None else str(address.password),
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**kept, **found, **{name: value for name, value in plain.items() if value}}
