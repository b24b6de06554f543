"""The API's own role on PostgreSQL: it may read the cloud database and nothing else."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import make_url

from common.errors import ConfigurationError
from db import engine


def grant_reader(url: str, role: str) -> None:
    """Grant `role` read access to every table of the database at `url`, later ones too.

    `url` is the owner's; the role must exist. All its other rights on these tables are revoked.
    Raises ConfigurationError when the database isn't PostgreSQL, or refuses.
    """
    if make_url(url).get_backend_name() != "postgresql":
        raise ConfigurationError("A role that only reads is a matter of PostgreSQL.")
    writer = engine.writer(url, pool_size=1)
    try:
        with writer.begin() as connection:
            for statement in _statements(connection, role):
                connection.exec_driver_sql(statement)
    except sa.exc.DBAPIError as error:
        reason = str(error.orig).strip().partition("\n")[0]
        raise ConfigurationError(f"{role} can't be made a reader: {reason}") from error
    finally:
        writer.dispose()


def _statements(connection: sa.Connection, role: str) -> tuple[str, ...]:
    quote = connection.dialect.identifier_preparer.quote_identifier
    name = quote(role)
    schema = quote(connection.exec_driver_sql("SELECT current_schema()").scalar_one())
    return (
        f"REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {name}",
        f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA {schema} FROM {name}",
        f"REVOKE CREATE ON SCHEMA {schema} FROM {name}",
        f"GRANT USAGE ON SCHEMA {schema} TO {name}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {name}",
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT ON TABLES TO {name}",
    )
