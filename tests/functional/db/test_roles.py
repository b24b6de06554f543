"""What opens the database for reading can't write: by the engine, and by the role."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from common.databases.migrations import Phase
from common.errors import ConfigurationError
from conductor.store import restored
from db import engine, migrate, roles
from db.schema import cloud_identity, quota_limits
from launcher import configuration, databases
from tests.functional.db.conftest import PostgresServer

ROW = {"project_id": "p", "resource": "cores", "hard_limit": 1}


def insert(opened: sa.Engine) -> None:
    try:
        with opened.begin() as connection:
            connection.execute(quota_limits.insert().values(**ROW))
    finally:
        opened.dispose()


def test_a_reader_engine_reads_and_never_writes(url: str) -> None:
    migrate.upgrade(url)
    insert(engine.writer(url))
    with pytest.raises(sa.exc.DBAPIError, match=r"(?i)read.?only"):
        insert(engine.reader(url))
    reader = engine.reader(url)
    with reader.connect() as connection:
        assert [dict(row._mapping) for row in connection.execute(quota_limits.select())] == [ROW]
    reader.dispose()


@pytest.fixture
def role(postgres_server: PostgresServer, postgres_url: str) -> Iterator[str]:
    """A role that exists and may nothing; its name needs quotes."""
    name = f'Reader "{uuid.uuid4().hex[:8]}'
    quoted = '"' + name.replace('"', '""') + '"'
    postgres_server.execute(f"CREATE ROLE {quoted} LOGIN PASSWORD 'secret'")
    yield name
    inside = PostgresServer(postgres_url)
    inside.execute(f"DROP OWNED BY {quoted}")
    postgres_server.execute(f"DROP ROLE {quoted}")


def test_who_may_not_change_tables_is_referred_to_their_owner(
    postgres_url: str, role: str
) -> None:
    migrate.upgrade(postgres_url)
    roles.grant_writer(postgres_url, role)
    owner = PostgresServer(postgres_url)
    # as the release before left it
    owner.execute("ALTER TABLE agent_leases DROP COLUMN nodes")
    owner.execute("UPDATE alembic_version SET version_num = 'r0005_group_waits'")
    login = sa.make_url(postgres_url).set(username=role, password="secret")
    conf = configuration.load([])
    conf.set_override("connection", login.render_as_string(hide_password=False), "database")
    with pytest.raises(ConfigurationError, match=r"owners.conf: must be owner of table agent_l"):
        databases.upgrade(conf, phases=(Phase.EXPAND,))


def as_role(url: str, role: str) -> sa.Engine:
    """An engine that may write, as far as the role may."""
    login = sa.make_url(url).set(username=role, password="secret")
    return engine.writer(login.render_as_string(hide_password=False))


def test_a_reader_role_reads_and_never_writes(postgres_url: str, role: str) -> None:
    migrate.upgrade(postgres_url)
    insert(engine.writer(postgres_url))
    owner = PostgresServer(postgres_url)
    quoted = '"' + role.replace('"', '""') + '"'
    owner.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {quoted}")
    for _ in range(2):
        roles.grant_reader(postgres_url, role)
    with pytest.raises(sa.exc.ProgrammingError, match="permission denied"):
        insert(as_role(postgres_url, role))
    owner.execute("CREATE TABLE later (id integer)")
    reader = as_role(postgres_url, role)
    with reader.connect() as connection:
        assert len(connection.execute(quota_limits.select()).all()) == 1
        assert connection.exec_driver_sql("SELECT * FROM later").all() == []
        for statement in ("DELETE FROM later", "DROP TABLE later", "CREATE TABLE own (id int)"):
            connection.rollback()
            with pytest.raises(sa.exc.ProgrammingError):
                connection.exec_driver_sql(statement)
    reader.dispose()


def test_a_writer_role_changes_rows_and_no_table(postgres_url: str, role: str) -> None:
    migrate.upgrade(postgres_url)
    for _ in range(2):
        roles.grant_writer(postgres_url, role)
    writer = as_role(postgres_url, role)
    insert(writer)
    with writer.connect() as connection:
        assert len(connection.execute(quota_limits.select()).all()) == 1
        for statement in (
            "DROP TABLE quota_limits",
            "ALTER TABLE quota_limits ADD COLUMN more integer",
            "TRUNCATE quota_limits",
            "CREATE TABLE own (id int)",
        ):
            connection.rollback()
            with pytest.raises(sa.exc.ProgrammingError, match=r"permission denied|must be owner"):
                connection.exec_driver_sql(statement)
    writer.dispose()


def test_a_writer_role_notices_a_fail_over(postgres_url: str, role: str) -> None:
    """And leaves out IDs of operations that may be lost."""
    migrate.upgrade(postgres_url)
    roles.grant_writer(postgres_url, role)
    writer = as_role(postgres_url, role)
    with writer.begin() as connection:
        assert not restored.follow(connection, "77/1")
        assert restored.follow(connection, "77/2")
        assert connection.scalar(sa.select(cloud_identity.c.compare_since)) is not None
    writer.dispose()


def test_a_role_that_is_not_there_is_reported(postgres_url: str) -> None:
    with pytest.raises(ConfigurationError, match="nobody_here"):
        roles.grant_reader(postgres_url, "nobody_here")


def test_roles_are_a_matter_of_postgresql(sqlite_url: str) -> None:
    with pytest.raises(ConfigurationError, match="PostgreSQL"):
        roles.grant_reader(sqlite_url, "reader")
