"""Makes a backup of a cloud, and puts one back.

The record is dumped first, then placement's claims, then Keystone, then keys and passwords: what
comes later may only know more than what comes before. Placement's database is a convenience:
agents and the audit write it again from the record.
"""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from oslo_config import cfg

import db.migrate
import db.restored
from common import clock
from common.databases import revisions
from common.databases.revisions import State
from common.errors import ConfigurationError
from common.release import VERSION
from db import engine
from db.reads import cloud
from launcher import databases
from launcher.backups import dumps, manifest
from launcher.backups.manifest import Manifest

#: of the embedded cloud's state directory, beside the databases
_FILES = ("secrets.json", "clouds.yaml", "openrc")
_KEYSTONE = "keystone"
_KEYSTONE_DATABASE = "keystone.db"
_KEYS = ("fernet-keys", "credential-keys")
#: services whose last sign is younger may still run
_RUNNING_SECONDS = 15.0

Say = Callable[[str], None]
T = TypeVar("T")


def make(conf: cfg.ConfigOpts, folder: Path, state: Path | None, say: Say) -> None:
    """Write a backup into a new folder. ``state``: the embedded cloud's state directory.

    Raises ConfigurationError with the reason; then the folder has no manifest.
    """
    urls = _urls(conf)
    _require_current(conf)
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError as error:
        raise ConfigurationError(f"{folder} exists: a backup gets a folder of its own.") from error
    except OSError as error:
        raise ConfigurationError(f"{folder} can't be made: {error.strerror}.") from error
    began = clock.utcnow()
    for name, url in urls.items():
        dumps.dump(url, folder / _dump(name))
        say(f"Dumped the {name} database.")
    identity = _identity_in(folder / _dump("cloud"), urls["cloud"])
    if state is not None:
        _save_state(state, folder, say)
    made = Manifest(
        made_at=began.isoformat(timespec="seconds"),
        release=VERSION,
        cloud_id=identity.cloud_id,
        epoch=identity.epoch,
        revisions={
            name: str(databases.state(name, url)[0].expanded) for name, url in urls.items()
        },
        files={name: manifest.sha256(folder / name) for name in manifest.files(folder)},
    )
    manifest.write(folder, made)


def put_back(
    conf: cfg.ConfigOpts, folder: Path, state: Path | None, say: Say, *, apply: bool
) -> None:
    """Replace the databases by those of a backup, and hold what destroys.

    Without ``apply`` say what would be replaced. Raises ConfigurationError with the reason;
    nothing is replaced then.
    """
    found, urls = manifest.read(folder), _urls(conf)
    _require_release(found)
    missing = [name for name in urls if _dump(name) not in found.files]
    if missing:
        raise ConfigurationError(f"The backup has no dump of: {', '.join(missing)}.")
    now = _now(urls["cloud"])
    if now is not None:
        _require_same(found, now)
        _require_stopped(urls["cloud"])
    say(
        f"The backup was made at {found.made_at} by micronova {found.release}, of cloud "
        f"{found.cloud_id} at epoch {found.epoch}"
        + ("." if now is None else f"; the record is at epoch {now.epoch} now.")
    )
    for name, url in urls.items():
        if not apply:
            say(f"Would replace the {name} database.")
            continue
        former = dumps.load(url, folder / _dump(name))
        say(f"Replaced the {name} database{f'; the former one is {former}' if former else ''}.")
        if name == "cloud":
            db.restored.hold(url, found.made_at, found.epoch)
    if state is not None:
        _load_state(state, folder, found, say, apply=apply)


def _urls(conf: cfg.ConfigOpts) -> dict[str, str]:
    urls = databases.urls(conf)
    if "cloud" not in urls:
        raise ConfigurationError("The configuration names no [database] connection.")
    return urls


def _dump(name: str) -> str:
    return f"{name}.dump"


def _require_current(conf: cfg.ConfigOpts) -> None:
    for name, problem in databases.check(conf).items():
        if problem is not None:
            raise ConfigurationError(f"The {name} database {problem}.")


def _require_release(found: Manifest) -> None:
    for name, revision in found.revisions.items():
        known = databases.known(name) if name in databases.NAMES else None
        if known is None or revisions.problem(State(revision), known) is not None:
            needed = None if known is None else known.expanding[-1]
            raise ConfigurationError(
                f"The backup's {name} database is at revision {revision}, this release needs "
                f"{needed}: put it back with micronova {found.release}, which made it, and "
                "upgrade then."
            )


def _require_same(found: Manifest, now: cloud.Identity) -> None:
    if now.cloud_id and now.cloud_id != found.cloud_id:
        raise ConfigurationError(
            f"The database there is of another cloud ({now.cloud_id}, the backup's is "
            f"{found.cloud_id}): give the backup a database of its own."
        )


def _require_stopped(url: str) -> None:
    since = clock.utcnow() - datetime.timedelta(seconds=_RUNNING_SECONDS)
    running = _read(url, lambda c: cloud.running(c, since))
    if running:
        raise ConfigurationError(
            f"Conductors still run ({', '.join(running)}): stop all services first. A killed "
            f"conductor counts as running for {_RUNNING_SECONDS:g} s."
        )


def _now(url: str) -> cloud.Identity | None:
    """Return the identity of the database that is there; None: it is empty, or of no release."""
    if db.migrate.check(url) is not None:
        return None
    return _read(url, cloud.identity)


def _identity_in(dump: Path, url: str) -> cloud.Identity:
    """Return the identity that a dump has: of SQLite its own, else at most that of now."""
    where = f"sqlite:///{dump}" if url.startswith("sqlite") else url
    return _read(where, cloud.identity)


def _read(url: str, read: Callable[[sa.Connection], T]) -> T:
    reader = engine.reader(url, pool_size=1)
    try:
        with reader.connect() as connection:
            return read(connection)
    finally:
        reader.dispose()


# --- the embedded cloud


def _save_state(state: Path, folder: Path, say: Say) -> None:
    keystone = state / _KEYSTONE
    if (keystone / _KEYSTONE_DATABASE).exists():
        (folder / _KEYSTONE).mkdir(mode=0o700)
        dumps.dump(_sqlite(keystone), folder / _KEYSTONE / _KEYSTONE_DATABASE)
        for name in _KEYS:
            shutil.copytree(keystone / name, folder / _KEYSTONE / name)
        say("Dumped Keystone's database and its keys.")
    for name in _FILES:
        if (state / name).exists():
            shutil.copy2(state / name, folder / name)
            (folder / name).chmod(0o600)
    say("Copied passwords and logins.")


def _load_state(state: Path, folder: Path, found: Manifest, say: Say, *, apply: bool) -> None:
    keystone = state / _KEYSTONE
    if f"{_KEYSTONE}/{_KEYSTONE_DATABASE}" in found.files:
        if not apply:
            say("Would replace Keystone's database, its keys, passwords and logins.")
            return
        keystone.mkdir(mode=0o700, parents=True, exist_ok=True)
        dumps.load(_sqlite(keystone), folder / _KEYSTONE / _KEYSTONE_DATABASE)
        for name in _KEYS:
            shutil.rmtree(keystone / name, ignore_errors=True)
            shutil.copytree(folder / _KEYSTONE / name, keystone / name)
        say("Replaced Keystone's database and its keys.")
    for name in _FILES:
        if apply and name in found.files:
            shutil.copy2(folder / name, state / name)


def _sqlite(keystone: Path) -> str:
    return f"sqlite:///{keystone / _KEYSTONE_DATABASE}"
