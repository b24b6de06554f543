"""Upgrade both databases, and compare them with this release."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from oslo_config import cfg

from common.errors import ConfigurationError

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


def upgrade(conf: cfg.ConfigOpts, names: tuple[str, ...] = ("cloud", "placement")) -> list[str]:
    """Upgrade the named databases and return their names. May run at any time.

    Raises ConfigurationError when none is configured, or one is of another release.
    """
    import db.migrate
    import placement.db.migrate

    upgrades: Mapping[str, Callable[[str], object]] = {
        "cloud": db.migrate.upgrade,
        "placement": placement.db.migrate.upgrade,
    }
    found = {name: url for name, url in urls(conf).items() if name in names}
    if not found:
        raise ConfigurationError("The configuration names no database to upgrade.")
    for name, url in found.items():
        upgrades[name](url)
    return list(found)


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


def check(
    conf: cfg.ConfigOpts, names: tuple[str, ...] = ("cloud", "placement")
) -> dict[str, str | None]:
    """Return {database: what is wrong with it, or None} for those that are configured."""
    import db.migrate
    import placement.db.migrate

    checks: Mapping[str, Callable[[str], str | None]] = {
        "cloud": db.migrate.check,
        "placement": placement.db.migrate.check,
    }
    return {name: checks[name](url) for name, url in urls(conf).items() if name in names}
