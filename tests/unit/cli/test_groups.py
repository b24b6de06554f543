"""Host aggregates and server groups."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from openstack import exceptions
from openstack.compute.v2.aggregate import Aggregate
from openstack.compute.v2.server_group import ServerGroup

from tests.fixtures.sdk import FakeConnection, FakeProxy, run

# the SDK warns of its own future whenever it makes a resource
pytestmark = pytest.mark.filterwarnings("ignore:The _compute_attributes method is deprecated")


def an_aggregate(**changes: Any) -> Aggregate:
    body: dict[str, Any] = {
        "id": 7,
        "uuid": "u",
        "name": "fast",
        "availability_zone": "az1",
        "metadata": {"availability_zone": "az1", "ssd": "true"},
        "hosts": ["pve2", "pve1"],
    }
    return Aggregate(**{**body, **changes})


def a_group(**changes: Any) -> ServerGroup:
    body: dict[str, Any] = {"id": "g", "name": "apart", "policy": "anti-affinity", "rules": {}}
    return ServerGroup(**{**body, "members": ["s1"], **changes})


def rows(connection: FakeConnection, *argv: str) -> Any:
    ran = run(connection, *argv, "-f", "json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_aggregate_list() -> None:
    others = an_aggregate(name="slow", availability_zone=None, metadata={}, hosts=None)
    compute = FakeProxy(aggregates=lambda: [an_aggregate(), others])
    found = rows(FakeConnection(compute), "aggregate", "list", "--long")
    assert list(found[0]) == [*("ID", "UUID", "Name", "Availability Zone", "Properties", "Hosts")]
    assert found[0]["Properties"] == {"ssd": "true"}
    for option, value in (("--host", "pve1"), ("--availability-zone", "az1")):
        [row] = rows(FakeConnection(compute), "aggregate", "list", option, value)
        assert row["Name"] == "fast"


def test_aggregate_create_and_change() -> None:
    compute = FakeProxy(
        create_aggregate=an_aggregate(),
        find_aggregate=lambda *_, **__: an_aggregate(),
        set_aggregate_metadata=an_aggregate(),
        update_aggregate=None,
        add_host_to_aggregate=an_aggregate(),
        remove_host_from_aggregate=an_aggregate(),
        delete_aggregate=None,
    )
    connection = FakeConnection(compute)
    made = rows(connection, "aggregate", "create", "fast", "--zone", "az1", "--property", "a=b")
    assert (made["name"], made["properties"]["ssd"]) == ("fast", "true")
    assert compute.called("create_aggregate") == [
        ((), {"name": "fast", "availability_zone": "az1"})
    ]
    assert run(connection, "aggregate", "set", "fast", "--name", "x", "--zone", "az2").code == 0
    assert compute.called("update_aggregate") == [
        ((7,), {"name": "x", "availability_zone": "az2"})
    ]
    assert (
        run(connection, "aggregate", "set", "fast", "--no-property", "--property", "c=d").code == 0
    )
    assert run(connection, "aggregate", "unset", "fast", "--property", "ssd").code == 0
    assert [arguments[1] for arguments, _ in compute.called("set_aggregate_metadata")] == [
        {"a": "b"},
        {"ssd": None, "c": "d"},
        {"ssd": None},
    ]
    for verb in ("add", "remove"):
        assert rows(connection, "aggregate", verb, "host", "fast", "pve1")["name"] == "fast"
    assert run(connection, "aggregate", "delete", "fast").code == 0
    assert rows(connection, "aggregate", "show", "fast")["properties"] == {"ssd": "true"}


def test_images_to_cache() -> None:
    compute = FakeProxy(find_aggregate=an_aggregate(), aggregate_precache_images=None)
    image = FakeProxy(find_image=lambda name, **_: SimpleNamespace(id=f"id-{name}"))
    connection = FakeConnection(compute, image=image)
    assert run(connection, "aggregate", "cache", "image", "fast", "a", "b").code == 0
    assert compute.called("aggregate_precache_images") == [((7, ["id-a", "id-b"]), {})]


def test_server_groups() -> None:
    compute = FakeProxy(
        server_groups=[a_group()],
        find_server_group=a_group(),
        create_server_group=a_group(),
        delete_server_group=None,
    )
    connection = FakeConnection(compute)
    [row] = rows(connection, "server", "group", "list", "--long", "--limit", "5", "--offset", "1")
    assert list(row) == ["ID", "Name", "Policy", "Members", "Project Id", "User Id"]
    assert compute.called("server_groups") == [((), {"limit": 5, "offset": 1, "paginated": False})]
    shown = rows(connection, "server", "group", "show", "apart")
    assert (shown["members"], shown["policy"]) == (["s1"], "anti-affinity")
    assert "policies" not in shown
    command = ("server", "group", "create", "apart", "--policy", "anti-affinity")
    rows(connection, *command, "--rule", "max_server_per_host=2")
    assert compute.called("create_server_group") == [
        ((), {"name": "apart", "policy": "anti-affinity", "rules": {"max_server_per_host": "2"}})
    ]
    assert run(connection, "server", "group", "delete", "apart").code == 0


def test_a_group_that_can_t_be_deleted_is_repeated() -> None:
    def missing(*_: Any, **__: Any) -> Any:
        raise exceptions.NotFoundException("No ServerGroup found for x")

    ran = run(
        FakeConnection(FakeProxy(find_server_group=missing)), "server", "group", "delete", "x"
    )
    assert ran.code == 1
    assert "Failed to delete server group 'x'" in ran.err
