"""Migrations: they make what the schema says, once, whoever starts them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from common import clock
from common.errors import Unavailable
from db import engine, migrate, schema
from db.schema import metadata


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
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
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


def test_a_downgrade_leaves_nothing(sqlite_url: str) -> None:
    from alembic import command

    migrate.upgrade(sqlite_url)
    with connected(sqlite_url) as connection:
        config = migrate._config()
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
        assert sa.inspect(connection).get_table_names() == ["alembic_version"]


def test_an_empty_database_is_told_and_not_made(sqlite_url: str, tmp_path: Path) -> None:
    assert migrate.check(sqlite_url) == "is empty: run 'micronova db upgrade'"
    assert list(tmp_path.iterdir()) == []


def test_a_newer_database_is_told(sqlite_url: str) -> None:
    migrate.upgrade(sqlite_url)
    with connected(sqlite_url) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    problem = migrate.check(sqlite_url)
    newer = f"is at revision 9999, which is newer than this release ({migrate.head()})"
    assert problem == newer


def test_a_database_out_of_reach_is_told_without_the_password() -> None:
    url = "postgresql+psycopg://someone:hidden-word@127.0.0.1:1/nowhere"
    problem = migrate.check(url)
    assert problem is not None
    assert problem.startswith("can't be read: The cloud database doesn't answer:")
    assert "hidden-word" not in problem
    with pytest.raises(Unavailable) as caught:
        migrate.upgrade(url)
    assert "hidden-word" not in str(caught.value)


def test_old_refusals_that_may_hold_secrets_are_forgotten(sqlite_url: str) -> None:
    migrate.upgrade(sqlite_url, "0008_refused")
    row = {
        "project_id": "demo",
        "user_id": "demo",
        "request_id": "req-1",
        "method": "POST",
        "path": "/v2.1/servers",
        "details": {},
        "of_admin": False,
        "received_at": clock.utcnow(),
        "answered_at": clock.utcnow(),
    }
    secret = {"status": 400, "message": "Invalid input … Value: {'adminPass': 's3cr3t'}"}
    plain = {"status": 403, "message": "Quota exceeded"}
    writer = engine.writer(sqlite_url)
    with writer.begin() as connection:
        connection.execute(schema.refusals.insert(), [row | secret, row | plain])
    writer.dispose()
    migrate.upgrade(sqlite_url)
    with writer.connect() as connection:
        assert connection.execute(sa.select(schema.refusals.c.status)).scalars().all() == [403]
    writer.dispose()
    [path] = [Path(sa.make_url(sqlite_url).database or "")]
    for file in path.parent.glob(f"{path.name}*"):
        assert b"s3cr3t" not in file.read_bytes()
