"""Calls whose answers were lost: what another conductor finds of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pytest

from common.context import RequestContext
from common.errors import Unavailable
from common.rpc import Done, deadlines
from common.rpc.deadlines import Deadline, Wait
from conductor.endpoints.servers.server_groups import ServerGroupEndpoint
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.server_groups import NewServerGroup
from conductor.rpc.servers.servers import CreateServers
from db import schema
from db.reads.ledger import calls
from tests.functional.conductor.harness import IMAGE, World

CALL = "0123456789abcdef" * 2


@contextlib.contextmanager
def called(call: str = CALL) -> Iterator[None]:
    """A conductor answers a call."""
    with deadlines.answering(Deadline(Wait(30.0, 5.0, call=call), time.monotonic())):
        yield


def look(world: World, method: str, kind: Any, call: str = CALL) -> Done | None:
    return calls.looking(world.conductor.store.read)(world.ctxt, call, method, kind)


def a_request(uuid: str = "") -> CreateServers:
    flavor = FlavorSnapshot("1", "m1.tiny", 1, 512, 1)
    return CreateServers("web", flavor, IMAGE, uuids=(uuid,) if uuid else ())


def test_a_create_is_found_by_its_call(world: World) -> None:
    assert look(world, "create_servers", None) is None
    with called():
        created, _ = world.conductor.creates.create(world.ctxt, a_request())
    found = look(world, "create_servers", None)
    assert found is not None
    assert found.answer == {
        "reservation_id": created.reservation_id,
        "uuids": list(created.uuids),
    }
    assert look(world, "create_servers", None, "another call of the request") is None


def test_a_server_is_created_once(world: World) -> None:
    """Two conductors at once, neither aware of the other."""
    uuid = "5f8f1c9e-3a3b-4a6e-9d0a-000000000001"
    first, begun = world.conductor.creates.create(world.ctxt, a_request(uuid))
    second, none = world.conductor.creates.create(world.ctxt, a_request(uuid))
    assert (first.uuids, len(begun)) == ((uuid,), 1)
    assert (second.uuids, none, second.repeated) == ((uuid,), [], True)
    assert len(world.rows(schema.servers)) == 1
    assert len(world.rows(schema.operations)) == 1


def test_an_action_is_found_by_its_call(world: World) -> None:
    (uuid,) = world.create()
    with called():
        operation = world.conductor.accept.act(world.ctxt, uuid, "delete")
    assert look(world, "act", int) == Done(operation.id)
    assert look(world, "detach_volume", type(None)) == Done(None)
    with pytest.raises(Unavailable, match="its answer is lost"):
        look(world, "attach_volume", dict)


def test_what_has_no_operation_is_found_by_its_uuid(world: World) -> None:
    doors = ServerGroupEndpoint(world.conductor.cloud)
    new = NewServerGroup("p", "u", "g", "affinity")
    assert look(world, "create_server_group", str) is None
    with called():
        made = doors.create_server_group(RequestContext(project_id="p", user_id="u"), new)
    assert look(world, "create_server_group", str) == Done(made)
    assert look(world, "create_server_group", str, "another") is None


def test_every_method_that_makes_something_is_one_of_the_conductors() -> None:
    from conductor.rpc import ConductorRpc

    assert all(hasattr(ConductorRpc, method) for method in calls.MAKES)
