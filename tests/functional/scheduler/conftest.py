"""Placement as it is, over HTTP."""

from __future__ import annotations

from tests.functional.placement.conftest import (  # noqa: F401
    app,
    client,
    conf,
    database_url,
    endpoint,
    mariadb_server,
    mariadb_url,
    postgres_server,
    postgres_url,
    services,
    sqlite_url,
    url,
)
