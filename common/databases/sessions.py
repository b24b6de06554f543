"""The sessions of our processes in a database: each says which release it is of."""

from __future__ import annotations

import sqlalchemy as sa

from common.release import PROGRAM, VERSION

_NAME = f"{PROGRAM}/{VERSION}"
_OTHERS = sa.text(
    "SELECT application_name, count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND application_name LIKE :ours GROUP BY 1"
)


def named(url: sa.URL) -> dict[str, str]:
    """Return what names a process to its database: PostgreSQL shows it to every role.

    Nothing where the URL has a name of its own.
    """
    if url.get_backend_name() != "postgresql" or "application_name" in url.query:
        return {}
    return {"application_name": _NAME}


def releases(connection: sa.Connection) -> dict[str, int]:
    """Return {release: sessions of its processes}, without this one; PostgreSQL's alone."""
    if connection.dialect.name != "postgresql":
        return {}
    rows = connection.execute(_OTHERS, {"ours": f"{PROGRAM}/%"})
    return {name.partition("/")[2]: number for name, number in rows}
