"""A schema that is expanded while services of the release before run, and contracted after them.

The revisions are those that docs/development/new-revision.md prints.
"""

from __future__ import annotations

import dataclasses
import datetime
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common.databases.migrations import ALL, Migrations, Phase
from common.databases.revisions import State
from common.errors import ConfigurationError, Unavailable
from db import engine, migrate, schema
from db.records import ServerRecord, columns
from db.types import UtcDateTime
from launcher import databases
from tests.functional import next_revision
from tests.functional.db.conftest import KINDS
from tests.functional.next_revision import CONTRACTED, EXPANDED
from tests.functional.waiting import eventually
from tests.pages import ROOT

NEW = sa.table("servers", *map(sa.column, ("uuid", "reservation")))
OLD = schema.servers


@pytest.fixture
def chains(tmp_path: Path) -> Migrations:
    """The revisions of a release after this one."""
    folder = tmp_path / "migrations"
    shutil.copytree(ROOT / "db" / "migrations", folder)
    next_revision.add(folder)
    return Migrations(folder, "cloud", schema.metadata)


@contextmanager
def connected(url: str) -> Iterator[sa.Connection]:
    writer = engine.writer(url)
    try:
        with writer.begin() as connection:
            yield connection
    finally:
        writer.dispose()


_VALUES: Mapping[type, Any] = {
    sa.String: "x",
    sa.Integer: 1,
    sa.Boolean: False,
    UtcDateTime: datetime.datetime.now(datetime.UTC),
}


def _needed(column: sa.Column[Any], uuid: str) -> Any:
    if column.name == "uuid":
        return uuid
    return next((v for kind, v in _VALUES.items() if isinstance(column.type, kind)), {})


def add_by_old(url: str, uuid: str, reservation: str) -> None:
    """Insert a server as this release does."""
    values = {
        column.key: _needed(column, uuid)
        for column in OLD.c
        if not (column.nullable or column.primary_key or column.default or column.server_default)
    }
    with connected(url) as connection:
        connection.execute(OLD.insert().values(**values | {"reservation_id": reservation}))


def read_by_old(url: str) -> dict[str, str]:
    """Return {server: its reservation} as this release reads it, with all that it reads."""
    with connected(url) as connection:
        connection.execute(sa.select(*columns(OLD, ServerRecord))).all()
        rows = connection.execute(sa.select(OLD.c.uuid, OLD.c.reservation_id))
        return {row.uuid: row.reservation_id for row in rows}


def read_by_new(url: str) -> dict[str, str]:
    with connected(url) as connection:
        rows = connection.execute(sa.select(NEW.c.uuid, NEW.c.reservation))
        return {row.uuid: row.reservation for row in rows}


def shape(url: str) -> dict[str, Any]:
    """What a database is made of, without the order of columns."""
    with connected(url) as connection:
        inspector = sa.inspect(connection)
        return {
            table: {
                "columns": sorted(
                    (one["name"], str(one["type"]), one["nullable"], one["default"])
                    for one in inspector.get_columns(table)
                ),
                "key": inspector.get_pk_constraint(table)["constrained_columns"],
                "indexes": sorted(str(one["name"]) for one in inspector.get_indexes(table)),
                "unique": sorted(str(one) for one in inspector.get_unique_constraints(table)),
            }
            for table in inspector.get_table_names()
        }


def test_old_services_run_between_expansion_and_contraction(url: str, chains: Migrations) -> None:
    triggers = url.startswith("postgresql")
    migrate.upgrade(url)
    add_by_old(url, "before", "r-1")
    migrate.upgrade(url, (Phase.EXPAND,), chains)
    assert migrate.state(url) == State(EXPANDED)
    # This release, which doesn't know the revision, starts and works.
    assert migrate.check(url) is None
    databases.require("cloud", url)
    add_by_old(url, "between", "r-2")
    with connected(url) as connection:
        connection.execute(OLD.update().where(OLD.c.uuid == "before").values(description="mine"))
        connection.execute(sa.text("INSERT INTO server_notes VALUES ('before', 'a note')"))
    assert read_by_old(url) == {"before": "r-1", "between": "r-2"}
    if triggers:
        assert read_by_new(url) == {"before": "r-1", "between": "r-2"}
        with connected(url) as connection:
            mine = NEW.c.uuid == "between"
            connection.execute(NEW.update().where(mine).values(reservation="r-3"))
            theirs = OLD.c.uuid == "before"
            connection.execute(OLD.update().where(theirs).values(reservation_id="r-4"))
        assert read_by_new(url) == read_by_old(url) == {"before": "r-4", "between": "r-3"}
        migrate.upgrade(url, (Phase.CONTRACT,), chains)
        assert read_by_new(url) == {"before": "r-4", "between": "r-3"}
    else:
        with connected(url) as connection:
            connection.execute(sa.text("UPDATE servers SET reservation = reservation_id"))
        migrate.upgrade(url, (Phase.CONTRACT,), chains)
        assert read_by_new(url) == {"before": "r-1", "between": "r-2"}
    refused = migrate.check(url)
    assert refused is not None
    assert refused.startswith("was contracted by a newer release, to c0002_reservation")
    with pytest.raises(ConfigurationError, match="contracted by a newer release"):
        databases.require("cloud", url)
    with pytest.raises(sa.exc.IntegrityError), connected(url) as connection:
        connection.execute(NEW.update().values(reservation=None))


def test_both_ways_end_in_the_same_schema(
    url: str, chains: Migrations, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    migrate.upgrade(url)
    for phase in Phase:
        migrate.upgrade(url, (phase,), chains)
    stepwise = shape(url)
    if url.startswith("sqlite"):
        other = f"sqlite:///{tmp_path}/other.sqlite"
    else:
        other, name = url, sa.make_url(url).database
        schema = "SCHEMA public CASCADE" if url.startswith("postgresql") else f"SCHEMA {name}"
        with connected(url) as connection:
            connection.exec_driver_sql(f"DROP {schema}")
            connection.exec_driver_sql(f"CREATE {schema.removesuffix(' CASCADE')}")
    migrate.upgrade(other, ALL, chains)
    assert shape(other) == stepwise


def test_a_new_database_is_contracted_at_once(sqlite_url: str, chains: Migrations) -> None:
    migrate.upgrade(sqlite_url, (Phase.EXPAND,), chains)
    assert migrate.state(sqlite_url) == State(EXPANDED, CONTRACTED)


def test_what_is_not_expanded_is_not_contracted(sqlite_url: str, chains: Migrations) -> None:
    migrate.upgrade(sqlite_url)
    before = shape(sqlite_url)
    with pytest.raises(ConfigurationError, match="run 'micronova db expand'"):
        migrate.upgrade(sqlite_url, (Phase.CONTRACT,), chains)
    assert shape(sqlite_url) == before


def test_each_phase_may_run_again(sqlite_url: str, chains: Migrations) -> None:
    migrate.upgrade(sqlite_url)
    for phase in (*Phase, *Phase):
        migrate.upgrade(sqlite_url, (phase,), chains)
    before = shape(sqlite_url)
    migrate.upgrade(sqlite_url, ALL, chains)
    assert shape(sqlite_url) == before


@pytest.mark.skipif("mariadb" not in KINDS, reason="an interruption leaves nothing elsewhere")
def test_an_expansion_that_was_interrupted_is_completed(request: pytest.FixtureRequest) -> None:
    """MariaDB retains what a revision did before it was noted."""
    url = request.getfixturevalue("mariadb_url")
    migrate.upgrade(url)
    whole, known = shape(url), migrate.known().expanding
    for revision in known[:-1]:
        with connected(url) as connection:
            connection.execute(sa.text(f"UPDATE alembic_version SET version_num = '{revision}'"))
        migrate.upgrade(url, (Phase.EXPAND,))
        assert (migrate.state(url).expanded, shape(url)) == (known[-1], whole)


#: which lets others pass after each try
QUICK = migrate.Patience(lock_seconds=0.05, pause_seconds=0.05, tries=2_000)


def test_services_read_on_while_an_expansion_waits_for_a_table(
    postgres_url: str, chains: Migrations
) -> None:
    """As while a dump is made, which reads every table."""
    migrate.upgrade(postgres_url)
    expand = (postgres_url, (Phase.EXPAND,), chains)
    with ThreadPoolExecutor() as pool:
        with connected(postgres_url) as dump:
            dump.execute(sa.select(OLD.c.uuid)).all()
            expansion = pool.submit(migrate.upgrade, *expand, QUICK)
            with connected(postgres_url) as watching:
                waits = sa.text("SELECT 1 FROM pg_locks WHERE NOT granted")
                eventually(lambda: watching.execute(waits).first() is not None)
            with connected(postgres_url) as service:
                service.execute(sa.text("SET LOCAL statement_timeout = '20s'"))
                assert service.execute(sa.select(OLD.c.uuid)).all() == []
            with pytest.raises(Unavailable, match="tables are in use, as by a dump that runs"):
                migrate.upgrade(*expand, dataclasses.replace(QUICK, tries=1))
            assert not expansion.done()
        expansion.result()
    assert migrate.state(postgres_url) == State(EXPANDED)


def test_a_service_needs_an_expanded_database(sqlite_url: str) -> None:
    migrate.upgrade(sqlite_url)
    with connected(sqlite_url) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = 'r0000_before'")
    with pytest.raises(ConfigurationError, match="The cloud database is at revision r0000_before"):
        databases.require("cloud", sqlite_url)
    databases.require("cloud", "postgresql+psycopg://nobody@127.0.0.1:1/nowhere")
    databases.require("cloud", f"{sqlite_url}-not-made-yet")
