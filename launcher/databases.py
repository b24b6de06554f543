"""Upgrade both databases, and compare them with this release."""

from __future__ import annotations

import datetime
import importlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from common import clock
from common.databases import revisions
from common.errors import ConfigurationError, Unavailable
from common.log import logger
from common.release import VERSION, is_older

if TYPE_CHECKING:
    from common.databases.migrations import Phase
    from common.databases.revisions import Chains, State
    from db.reads.releases import Running

LOG = logger(__name__)

NAMES = ("cloud", "placement")

#: a service that ended without a sign counts as running for so long
SIGN_SECONDS = 60.0
#: PostgreSQL's SQLSTATE of what a role may not do
_NOT_THE_OWNER = "42501"
#: services that are named in a sentence
_NAMED = 3

ROLES: Mapping[str, tuple[str, bool]] = {
    "reader-role": ("cloud", False),
    "writer-role": ("cloud", True),
    "placement-role": ("placement", True),
}
"""{option: (database, whether the role may write)}"""


def urls(conf: cfg.ConfigOpts) -> dict[str, str]:
    """Return {database: URL with write access}, those that are configured."""
    found = {
        "cloud": conf.database.connection,
        "placement": conf.placement_database.connection,
    }
    return {name: url for name, url in found.items() if url}


def _module(name: str) -> Any:
    """Return what migrates a database; a process that needs one has no other in its memory."""
    return importlib.import_module("db.migrate" if name == "cloud" else "placement.db.migrate")


def upgrade(
    conf: cfg.ConfigOpts,
    names: Collection[str] = NAMES,
    phases: Collection[Phase] | None = None,
    *,
    alone: bool = False,
) -> list[str]:
    """Expand the named databases, contract them, or both; return their names. May run again.

    With `alone` nothing else uses them, whatever signs of life there are.

    Raises ConfigurationError when none is configured, one is of another release, the login isn't
    its owner's, or an older release uses what the contraction removes.
    """
    from common.databases.migrations import ALL, Phase

    phases = ALL if phases is None else phases
    found = {name: url for name, url in urls(conf).items() if name in names}
    if not found:
        raise ConfigurationError("The configuration names no database to upgrade.")
    if Phase.CONTRACT in phases and not alone:
        for name, url in found.items():
            _require_no_older(name, url)
    for name, url in found.items():
        _upgrade(name, url, phases)
    return list(found)


def _upgrade(name: str, url: str, phases: Collection[Phase]) -> None:
    from sqlalchemy import exc

    try:
        _module(name).upgrade(url, phases)
    except exc.ProgrammingError as error:
        if getattr(error.orig, "sqlstate", None) != _NOT_THE_OWNER:
            raise
        reason = str(error.orig).partition("\n")[0]
        raise ConfigurationError(
            f"The {name} database is changed by its owner, whose login quickstart and "
            f"docs/deploy.md have in owners.conf: {reason}."
        ) from error


def _require_no_older(name: str, url: str) -> None:
    if not to_contract(name, url):
        return
    older = [one for one in running(name, url) if is_older(one.version)]
    if older:
        more = f" and {len(older) - _NAMED} more" if len(older) > _NAMED else ""
        raise ConfigurationError(
            f"The {name} database is still used by a release before {VERSION}: "
            f"{', '.join(map(str, older[:_NAMED]))}{more}. Restart or stop them first; a killed "
            f"service counts as running for {SIGN_SECONDS:g} s."
        )


def known(name: str) -> Chains:
    """Return the revisions of a database that this release knows."""
    found: Chains = _module(name).known()
    return found


def state(name: str, url: str) -> tuple[State, Chains]:
    """Return how far a database is, and the revisions of this release.

    Raises Unavailable when it doesn't answer.
    """
    return _module(name).state(url), known(name)


def to_contract(name: str, url: str) -> tuple[str, ...]:
    """Return the revisions that are still to contract a database; none where it is empty.

    Raises Unavailable when it doesn't answer.
    """
    found, mine = state(name, url)
    return () if found.expanded is None else revisions.to_contract(found, mine)


def require(name: str, url: str) -> None:
    """Raise ConfigurationError if a database is another release's, so that this one can't use it.

    What doesn't answer may answer later, and what is empty may be made.
    """
    try:
        found, mine = state(name, url)
    except Unavailable as error:
        LOG.warning("Whether the %s database can be used isn't known: %s", name, error.message)
        return
    problem = revisions.problem(found, mine)
    if found.expanded is not None and problem is not None:
        raise ConfigurationError(f"The {name} database {problem}.")


def running(name: str, url: str) -> list[Running]:
    """Return who uses a database. Raises Unavailable when it doesn't answer."""
    from db import migrate
    from db.reads import releases

    if name != "cloud":
        return migrate.read(url, releases.connected)
    since = clock.utcnow() - datetime.timedelta(seconds=SIGN_SECONDS)
    return migrate.read(url, lambda connection: releases.running(connection, since))


def grant(conf: cfg.ConfigOpts, option: str, role: str) -> str:
    """Give a PostgreSQL role what an option of `ROLES` is for; return what it may do.

    Raises ConfigurationError when that database isn't configured.
    """
    import db.roles

    database, writes = ROLES[option]
    url = urls(conf).get(database)
    if url is None:
        group = "database" if database == "cloud" else "placement_database"
        raise ConfigurationError(f"--{option} needs [{group}] connection.")
    (db.roles.grant_writer if writes else db.roles.grant_reader)(url, role)
    return f"{'read and write' if writes else 'read'} the {database} database"


def check(conf: cfg.ConfigOpts, names: Collection[str] = NAMES) -> dict[str, str | None]:
    """Return {database: what is wrong with it, or None} for those that are configured."""
    return {name: _module(name).check(url) for name, url in urls(conf).items() if name in names}
