"""The database: migrations give what the schema says, and may run at every start."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import os_resource_classes
import os_traits
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from common.errors import Unavailable
from placement.db import migrate, schema
from placement.db.engine import Database

pytestmark = pytest.mark.timeout(900)


def test_the_revisions_make_the_schema(database_url: str) -> None:
    engine = sa.create_engine(database_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []
        traits = set(connection.scalars(sa.select(schema.traits.c.name)))
        classes = list(
            connection.scalars(
                sa.select(schema.resource_classes.c.name).order_by(schema.resource_classes.c.id)
            )
        )
    engine.dispose()
    assert traits == set(os_traits.get_traits())
    assert classes == list(os_resource_classes.STANDARDS)


def test_upgrades_at_the_same_time(url: str) -> None:
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: migrate.upgrade(url), range(3)))
    migrate.upgrade(url)


def test_writers_of_a_process_queue(database_url: str) -> None:
    database = Database(database_url)
    added = 0
    lock = threading.Lock()

    def work(number: int) -> None:
        nonlocal added

        def insert(connection: sa.Connection) -> None:
            connection.execute(
                sa.insert(schema.traits).values(name=f"CUSTOM_{number}", created_at=0)
            )

        database.write(insert)
        with lock:
            added += 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(40)))
    database.close()
    assert added == 40


def test_no_database_is_unavailable(tmp_path: Path) -> None:
    for url in (
        f"sqlite:///{tmp_path}/none/placement.db",
        "postgresql+psycopg://nobody:secret@127.0.0.1:1/none",
    ):
        database = Database(url)
        with pytest.raises(Unavailable) as caught:
            database.read(lambda connection: connection.execute(sa.text("SELECT 1")))
        assert "secret" not in str(caught.value)


def test_a_wrong_statement_is_no_failure_of_the_database(database_url: str) -> None:
    database = Database(database_url)
    for statement in ("SELEC 1", "SELECT missing FROM traits"):
        with pytest.raises(sa.exc.DBAPIError):
            database.read(lambda c, text=statement: c.exec_driver_sql(text))
        with pytest.raises(sa.exc.DBAPIError):
            database.write(lambda c, text=statement: c.exec_driver_sql(text))
    assert database.read(lambda c: c.execute(sa.text("SELECT 1")).scalar_one()) == 1
    database.close()


def test_a_broken_connection_is_replaced(database_url: str) -> None:
    database = Database(database_url)
    if not database.is_postgresql:
        pytest.skip("connections are ended with PostgreSQL's words")
    end = sa.text(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    database.read(lambda connection: connection.execute(sa.text("SELECT 1")))
    database.write(lambda connection: connection.execute(sa.text("SELECT 1")))
    other = sa.create_engine(database_url)
    with other.connect() as connection:
        connection.execute(end)
    other.dispose()
    assert database.read(lambda c: c.execute(sa.text("SELECT 1")).scalar_one()) == 1
    assert database.write(lambda c: c.execute(sa.text("SELECT 1")).scalar_one()) == 1
    database.close()


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/placement.sqlite")
    database.write(lambda c: c.exec_driver_sql("CREATE TABLE things (text TEXT)"))

    def fill(connection: sa.Connection) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count = 10")
        connection.exec_driver_sql("INSERT INTO things VALUES (?)", ("x" * 1_000_000,))

    with pytest.raises(Unavailable, match="disk of the database is full"):
        database.write(fill)
    database.close()
