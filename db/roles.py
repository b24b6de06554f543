"""Roles of services on PostgreSQL: the APIs' only reads; others read and write rows."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import make_url

from common.errors import ConfigurationError
from db import engine


def grant_reader(url: str, role: str) -> None:
    """Grant `role` read access to every table of the database at `url`, later ones too.

    `url` is the owner's; the role must exist. All its other rights on these tables are revoked.
    Raises ConfigurationError when the database isn't PostgreSQL, or refuses.
    """
    _grant(url, role, "SELECT", sequences=False)


def grant_writer(url: str, role: str) -> None:
    """Let `role` read, insert, change and delete rows, and not change tables; as above."""
    _grant(url, role, "SELECT, INSERT, UPDATE, DELETE", sequences=True)


def _grant(url: str, role: str, rights: str, *, sequences: bool) -> None:
    if make_url(url).get_backend_name() != "postgresql":
        raise ConfigurationError("A role that only reads is a matter of PostgreSQL.")
    owner = engine.writer(url, pool_size=1)
    try:
        with owner.begin() as connection:
            for statement in _statements(connection, role, rights, sequences=sequences):
                connection.exec_driver_sql(statement)
    except sa.exc.DBAPIError as error:
        reason = str(error.orig).strip().partition("\n")[0]
        kind = "writer" if sequences else "reader"
        raise ConfigurationError(f"{role} can't be made a {kind}: {reason}") from error
    finally:
        owner.dispose()


def _statements(
    connection: sa.Connection, role: str, rights: str, *, sequences: bool
) -> Iterator[str]:
    quote = connection.dialect.identifier_preparer.quote_identifier
    name = quote(role)
    schema = quote(connection.exec_driver_sql("SELECT current_schema()").scalar_one())
    yield f"REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {name}"
    yield f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA {schema} FROM {name}"
    yield f"REVOKE CREATE ON SCHEMA {schema} FROM {name}"
    yield f"GRANT USAGE ON SCHEMA {schema} TO {name}"
    yield f"GRANT {rights} ON ALL TABLES IN SCHEMA {schema} TO {name}"
    yield f"ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT {rights} ON TABLES TO {name}"
    if sequences:
        # UPDATE: after a fail-over conductors leave numbers out
        yield f"GRANT USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {name}"
        yield (
            f"ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} "
            f"GRANT USAGE, UPDATE ON SEQUENCES TO {name}"
        )
