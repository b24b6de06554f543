"""Migrations: they make what the schema says, once, however many start together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from common.errors import ConfigurationError, Unavailable
from db import engine, migrate
from db.schema import metadata
from tests import migration


@contextmanager
def connected(url: str) -> Iterator[sa.Connection]:
    writer = engine.writer(url)
    try:
        with writer.begin() as connection:
            yield connection
    finally:
        writer.dispose()


def test_the_migrated_schema_is_the_declared_one(url: str) -> None:
    migrate.upgrade(url)
    with connected(url) as connection:
        # MariaDB gives a default back in a spelling of its own.
        defaults = connection.dialect.name not in {"mysql", "mariadb"}
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": defaults}
        )
        assert compare_metadata(context, metadata) == []


def test_primary_keys_and_constraints_have_the_declared_names(url: str) -> None:
    def names(connection: sa.Connection) -> dict[str, set[object]]:
        inspector = sa.inspect(connection)
        return {
            table: {
                str(inspector.get_pk_constraint(table)),
                *(str(one) for one in inspector.get_unique_constraints(table)),
                *(str(one) for one in inspector.get_indexes(table)),
            }
            for table in metadata.tables
        }

    migrate.upgrade(url)
    with connected(url) as connection:
        migrated = names(connection)
        metadata.drop_all(connection)
        metadata.create_all(connection)
        assert migrated == names(connection)


def test_an_upgrade_changes_nothing_that_is_up_to_date(url: str) -> None:
    for _ in range(2):
        migrate.upgrade(url)
        assert migrate.current(url) == migrate.head()
        assert migrate.check(url) is None


def test_upgrades_that_start_together_take_turns(url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(migrate.upgrade, [url] * 4))
    assert migrate.check(url) is None


def test_an_empty_database_is_reported_and_not_made(sqlite_url: str, tmp_path: Path) -> None:
    assert migrate.check(sqlite_url) == "is empty: run 'micronova db upgrade'"
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_a_newer_release_expanded_can_be_used(sqlite_url: str) -> None:
    migrate.upgrade(sqlite_url)
    with connected(sqlite_url) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = 'r9999_later'")
    assert migrate.check(sqlite_url) is None
    migrate.upgrade(sqlite_url)
    assert migrate.current(sqlite_url) == "r9999_later"


def test_a_database_that_a_newer_release_contracted_is_refused(sqlite_url: str) -> None:
    migrate.upgrade(sqlite_url)
    with connected(sqlite_url) as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_contracted (version_num VARCHAR(32))")
        connection.exec_driver_sql("INSERT INTO alembic_contracted VALUES ('c9999_later')")
    problem = migrate.check(sqlite_url)
    assert problem is not None
    assert problem.startswith("was contracted by a newer release, to c9999_later")
    with pytest.raises(ConfigurationError, match="contracted by a newer release"):
        migrate.upgrade(sqlite_url)


def test_a_revision_of_nobody_is_refused(sqlite_url: str) -> None:
    migrate.upgrade(sqlite_url)
    with connected(sqlite_url) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = 'a fork'")
    assert migrate.check(sqlite_url) == "is at revision a fork, which this release doesn't know"
    with pytest.raises(ConfigurationError, match="doesn't know"):
        migrate.upgrade(sqlite_url)


def test_a_database_out_of_reach_is_reported_without_the_password() -> None:
    url = "postgresql+psycopg://someone:hidden-word@127.0.0.1:1/nowhere"
    problem = migrate.check(url)
    assert problem is not None
    assert problem.startswith("can't be read: The cloud database doesn't answer:")
    assert "hidden-word" not in problem
    with pytest.raises(Unavailable) as caught:
        migrate.upgrade(url)
    assert "hidden-word" not in str(caught.value)


@pytest.mark.parametrize("revision", ["0001_initial", "0045_network_attributes"])
def test_a_database_of_before_the_first_release_is_refused(sqlite_url: str, revision: str) -> None:
    with connected(sqlite_url) as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32))")
        connection.exec_driver_sql(f"INSERT INTO alembic_version VALUES ('{revision}')")
    refused = (
        f"is at revision {revision}, of before the first release, and can't be upgraded:"
        " begin with an empty one"
    )
    assert migrate.check(sqlite_url) == refused
    with pytest.raises(ConfigurationError, match=re.escape(refused)):
        migrate.upgrade(sqlite_url)
    with connected(sqlite_url) as connection:
        assert sa.inspect(connection).get_table_names() == ["alembic_version"]


@pytest.mark.parametrize("name", migration.DATABASES)
def test_the_initial_revision_is_written_from_the_schema(name: str) -> None:
    database = migration.DATABASES[name]
    if len(list(database.path.parent.glob("r*.py"))) > 1:
        pytest.skip("it is history: others follow it")
    assert database.path.read_text(encoding="utf-8") == migration.written(database)
