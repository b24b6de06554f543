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
from db import engine, migrate, resources, schema
from db.reads import images, networks, operations
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


def test_a_downgrade_leaves_nothing(sqlite_url: str) -> None:
    from alembic import command

    migrate.upgrade(sqlite_url)
    with connected(sqlite_url) as connection:
        config = migrate._config()
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
        assert sa.inspect(connection).get_table_names() == ["alembic_version"]


def test_an_empty_database_is_reported_and_not_made(sqlite_url: str, tmp_path: Path) -> None:
    assert migrate.check(sqlite_url) == "is empty: run 'micronova db upgrade'"
    assert list(tmp_path.iterdir()) == []


def test_a_newer_database_is_reported(sqlite_url: str) -> None:
    migrate.upgrade(sqlite_url)
    with connected(sqlite_url) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    problem = migrate.check(sqlite_url)
    newer = f"is at revision 9999, which is newer than this release ({migrate.head()})"
    assert problem == newer


def test_a_database_out_of_reach_is_reported_without_the_password() -> None:
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


def test_operations_of_the_release_before_are_about_servers(url: str) -> None:
    """What it left, and what it goes on writing while its last conductors run."""
    migrate.upgrade(url, "0011_ids")
    with connected(url) as connection:
        before = _table_before(connection)
        connection.execute(before.insert(), [_as_before(1, "left")])
    migrate.upgrade(url)
    with connected(url) as connection:
        assert _resources(connection) == [("server", "left")]
        connection.execute(before.insert(), [_as_before(2, "meanwhile")])
        new = _as_before(3, "unused") | resources.columns("server", "new")
        other = _as_before(4, "unused") | resources.columns("template", "sim1/100")
        connection.execute(schema.operations.insert(), [new, other])
        for uuid in ("left", "meanwhile", "new"):
            (found,) = operations.list_operations(connection, uuid)
            assert (found.resource_id, found.server_uuid) == (uuid, uuid)
        assert _resources(connection)[3] == ("template", "sim1/100")
        there = resources.about("template", "sim1/100")
        assert connection.scalars(sa.select(schema.operations.c.id).where(there)).all() == [4]
        # The release before reads the column it knows: of no server.
        query = sa.select(before.c.server_uuid).order_by(before.c.id)
        assert connection.scalars(query).all() == ["left", "meanwhile", "new", ""]
        # It commits no stage: the task_state says how far its operations are.
        assert connection.scalars(sa.select(schema.operations.c.stage)).all() == [None] * 4


def _table_before(connection: sa.Connection) -> sa.Table:
    """The table as the release before declares it."""
    added = {"resource_type", "resource_id", "stage"}
    names = {one["name"] for one in sa.inspect(connection).get_columns("operations")}
    assert not names & added
    kept = [column._copy() for column in schema.operations.c if column.name not in added]
    return sa.Table("operations", sa.MetaData(), *kept)


def _resources(connection: sa.Connection) -> list[tuple[str, str]]:
    columns = schema.operations.c
    query = sa.select(columns.resource_type, resources.RESOURCE_ID).order_by(columns.id)
    return [(row.resource_type, row.resource_id) for row in connection.execute(query)]


def _as_before(number: int, server_uuid: str) -> dict[str, object]:
    return {
        "id": number,
        "server_uuid": server_uuid,
        "project_id": "demo",
        "user_id": "demo",
        "request_id": f"req-{number}",
        "action": "create",
        "state": "queued",
        "attempt": 1,
        "context": {},
        "params": {},
        "plan": {},
        "started_at": clock.utcnow(),
        "updated_at": clock.utcnow(),
    }


def test_networks_of_the_release_before_are_the_clusters(url: str) -> None:
    """And those that it goes on finding while its last conductors run."""
    migrate.upgrade(url, "0022_network_tags")
    now = clock.utcnow()
    with connected(url) as connection:
        before = _without(schema.networks, connection)
        subnets = _without(schema.subnets, connection)
        rows = [("a", None), ("b", 7)]
        connection.execute(before.insert(), [_network(name, vlan) for name, vlan in rows])
        subnet = {"id": "s", "network_id": "b", "name": "s", "cidr": "10.0.0.0/24"}
        pool = {"pool_start": "10.0.0.2", "pool_end": "10.0.0.9", "next_ip": "10.0.0.2"}
        times = {"created_at": now, "updated_at": now}
        connection.execute(subnets.insert(), [subnet | pool | times | {"dns_nameservers": []}])
    migrate.upgrade(url)
    with connected(url) as connection:
        connection.execute(before.insert(), [_network("c", None)])
        columns = schema.networks.c
        query = sa.select(columns.id, columns.vlan, columns.segment).order_by(columns.id)
        assert connection.execute(query).all() == [("a", None, 0), ("b", 7, 7), ("c", None, 0)]
        found = networks.list_networks(connection, {})
        assert {(one.project_id, one.discovered, one.shared) for one in found} == {
            ("", True, True)
        }
        [there] = networks.list_subnets(connection, {})
        assert (there.pools, there.pool_end, there.project_id) == (None, "10.0.0.9", "")
        tagged = _network("d", 8) | {"bridge": "b", "discovered": False}
        connection.execute(schema.networks.insert(), [tagged])
        with pytest.raises(sa.exc.IntegrityError), connection.begin_nested():
            connection.execute(schema.networks.insert(), [tagged | {"id": "e"}])


def test_images_of_the_release_before_are_seen_as_they_were(url: str) -> None:
    """And those that it goes on finding while its last conductors run."""
    migrate.upgrade(url, "0026_port_addresses")
    with connected(url) as connection:
        before = _without(schema.images, connection)
        connection.execute(before.insert(), [_image("file", None), _image("own", "p")])
    migrate.upgrade(url)
    with connected(url) as connection:
        connection.execute(before.insert(), [_image("new", None)])
        for project, names in (("p", {"file", "new", "own"}), ("q", {"file", "new"})):
            found = images.listing(connection, project=project, reach=images.Reach())
            assert {one.name for one in found} == names
        [own] = images.listing(connection, [images.Condition("protected", "eq", False)])
        assert (own.name, own.visibility, own.tags) == ("own", "private", None)
        [file] = images.listing(connection, [images.Condition("name", "eq", "file")])
        assert (file.visibility, file.protected, file.hidden) == ("public", True, False)
        assert file.container_format == "bare"


def _image(name: str, project_id: str | None) -> dict[str, object]:
    now = clock.utcnow()
    values = {"id": name, "name": name, "status": "active", "size_bytes": 1, "disk_format": "raw"}
    more = {"properties": {}, "locations": {}, "project_id": project_id}
    return (
        values
        | more
        | {"min_disk_gib": 0, "min_ram_mib": 0}
        | dict.fromkeys(("created_at", "updated_at"), now)
    )


def _without(table: sa.Table, connection: sa.Connection) -> sa.Table:
    """A table as the release before declares it."""
    names = {one["name"] for one in sa.inspect(connection).get_columns(table.name)}
    kept = [column._copy() for column in table.c if column.name in names]
    return sa.Table(table.name, sa.MetaData(), *kept)


def _network(name: str, vlan: int | None) -> dict[str, object]:
    now = clock.utcnow()
    values = {"id": name, "name": name, "bridge": name, "vlan": vlan, "mtu": 1500}
    return values | {"created_at": now, "updated_at": now}
