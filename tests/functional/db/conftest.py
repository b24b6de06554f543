"""Empty databases: SQLite always, PostgreSQL and MariaDB where they are installed, or where
MICRONOVA_TEST_PG and MICRONOVA_TEST_MARIADB name one.
"""

from __future__ import annotations

import dataclasses
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.functional import backends


@dataclasses.dataclass(frozen=True)
class PostgresServer:
    """Where databases can be made: the URL of one of them, of a superuser."""

    url: str

    def execute(self, statement: str) -> None:
        """Run a statement outside any transaction."""
        engine = sa.create_engine(self.url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)
        engine.dispose()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The server that MICRONOVA_TEST_PG names, or a private one."""
    given = os.environ.get("MICRONOVA_TEST_PG")
    if given:
        yield PostgresServer(given)
        return
    with backends.postgres() as server:
        yield PostgresServer(server.url("postgres"))


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty PostgreSQL database."""
    name = f"test_{uuid.uuid4().hex}"
    postgres_server.execute(f"CREATE DATABASE {name}")
    url = sa.make_url(postgres_server.url).set(database=name)
    yield url.render_as_string(hide_password=False)
    postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite database that doesn't exist yet."""
    return f"sqlite:///{tmp_path / 'cloud.sqlite'}"


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[str]:
    """The URL of the superuser of MICRONOVA_TEST_MARIADB, or of a private one."""
    given = os.environ.get("MICRONOVA_TEST_MARIADB")
    if given:
        yield given
        return
    with backends.mariadb() as url:
        yield url


def mariadb_database(server_url: str) -> tuple[sa.Engine, str]:
    """A new database of a MariaDB, of whose superuser the URL is, and its URL.

    The engine is the server's.
    """
    server, name = sa.make_url(server_url), f"test_{uuid.uuid4().hex}"
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    return engine, server.set(database=name).render_as_string(hide_password=False)


@pytest.fixture
def mariadb_url(mariadb_server: str) -> Iterator[str]:
    """The URL of an empty MariaDB database."""
    engine, url = mariadb_database(mariadb_server)
    yield url
    with engine.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {sa.make_url(url).database}")
    engine.dispose()


KINDS = ["sqlite", "postgres"]
if os.environ.get("MICRONOVA_TEST_MARIADB") or (backends.MARIADB and backends.MARIADB_INSTALL):
    KINDS.append("mariadb")


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database, of each kind in turn."""
    found: str = request.getfixturevalue(f"{request.param}_url")
    return found
