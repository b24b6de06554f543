"""What lists of the clustering API are filtered and sorted by is the same in every database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from db import engine, schema
from db.reads.groups import actions
from db.reads.groups.groups import GROUPS, MEMBERS, POLICIES, PROFILES, RECEIVERS
from db.reads.keyset import Page
from db.reads.volumes.block_storage import Filter

MINE = {"project_id": "p", "user_id": "u"}
RECEIVER = {
    **{"id": "r", "name": "r", "group_id": "g", "action": "CLUSTER_CHECK", "params": {}},
    **{"key_hash": "", "sealed": "", "context": {}, "calls": 0},
}


@pytest.fixture
def connection(url: str) -> Iterator[sa.Connection]:
    writer = engine.writer(url)
    schema.metadata.create_all(writer)
    with writer.connect() as made:
        yield made
    writer.dispose()


def a_row(table: sa.Table, connection: sa.Connection, **values: Any) -> None:
    connection.execute(table.insert(), [{**MINE, "created_at": clock.utcnow(), **values}])


def an_operation(
    connection: sa.Connection, kind: str, about: str, action: str, state: str
) -> None:
    now = clock.utcnow()
    row = {"resource_type": kind, "resource_id": about, "action": action, "state": state}
    empty: dict[str, Any] = {"context": {}, "params": {}, "plan": {}, "request_id": "req-1"}
    times = {"started_at": now, "updated_at": now}
    connection.execute(schema.operations.insert(), [{**MINE, **row, **empty, **times}])


@pytest.mark.parametrize("version", [1.0, "1.0"])
def test_types_are_read_from_specs(connection: sa.Connection, version: Any) -> None:
    spec = {"type": "os.nova.server", "version": version}
    for name in ("a", "b"):
        row = {"id": name, "name": name, "spec": spec, "meta": {}, "request": {}}
        a_row(schema.scaling_profiles, connection, **row)
    wanted = Filter("p", {"type": ("os.nova.server-1.0", "other-1.0")})
    assert [one.id for one in PROFILES.listing(connection, wanted, [("type", False)])] == [
        "a",
        "b",
    ]
    assert PROFILES.listing(connection, Filter("p", {"type": ("other-1.0",)})) == []


@pytest.mark.parametrize("kind", [PROFILES, GROUPS, MEMBERS, POLICIES, RECEIVERS])
def test_every_sort_key_is_one(connection: sa.Connection, kind: Any) -> None:
    a_row(schema.scaling_receivers, connection, **RECEIVER)
    for key in kind.sortable:
        found = kind.listing(connection, Filter("p"), [(key, True)])
        assert len(found) == (kind is RECEIVERS), key


def test_operations_are_actions(connection: sa.Connection) -> None:
    an_operation(connection, "group", "the-group", "group-resize", "done")
    an_operation(connection, "group", "the-group", "group-keep", "queued")
    an_operation(connection, "server", "nobodys", "create", "done")

    def listed(order: str = "id", page: Page | None = None, **equal: Any) -> list[str]:
        found = actions.listing(connection, Filter("p", equal), [(order, False)], page)
        return [one.action_name for one in found]

    assert listed() == ["CLUSTER_RESIZE", "CLUSTER_RECOVER"]
    assert listed(status=("RUNNING",)) == ["CLUSTER_RECOVER"]
    assert listed(name=("cluster_resize_the-grou",)) == ["CLUSTER_RESIZE"]
    assert listed(action=("CLUSTER_RESIZE",), level=("INFO",), cluster_id=("the-group",)) == [
        "CLUSTER_RESIZE"
    ]
    assert listed(otype=("NODE",)) == []
    assert listed(page=Page(limit=1, marker=1)) == ["CLUSTER_RECOVER"]
    for key in actions.SORTABLE:
        assert len(listed(key)) == 2, key
