"""Creates and deletes that come at once: they share transactions, and each is answered as if it
had come alone."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from common.context import RequestContext
from common.errors import NotFound, QuotaExceeded, ServerLocked, ServerNotFound, Unavailable
from common.messages.scheduling import Decision
from common.resources.states import OperationState
from common.rpc import UNKNOWN
from common.rpc.gathering import Apart
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.servers import CreatedServers, CreateServers, RequestedNetwork
from conductor.servers import begin_delete
from conductor.servers.create import begin_create
from conductor.servers.create.commits import Chosen, Commits
from conductor.store.servers import vmids
from db import schema
from tests.functional import waiting
from tests.functional.conductor.harness import IMAGE, World
from tests.functional.conductor.test_create import network_id
from tests.functional.conductor.test_network_races import at_once
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401

pytestmark = pytest.mark.database

FLAVOR = FlavorSnapshot("1", "m1.tiny", 1, 512, 1)
#: the instances that a project of these tests may have
LIMIT = 10


@pytest.fixture
def world(tmp_path: Path, postgres_url: str) -> Iterator[World]:  # noqa: F811
    made = World(tmp_path, url=postgres_url)
    yield made
    made.close()
    for conductor in made.conductors:
        conductor.store._writer.dispose()
        conductor.store._reader.dispose()


def a_request(world: World, name: str = "web", **changes: Any) -> CreateServers:
    networks = (RequestedNetwork(network_id(world)),)
    return dataclasses.replace(CreateServers(name, FLAVOR, IMAGE, networks=networks), **changes)


def together(world: World, *requests: CreateServers) -> list[tuple[CreatedServers, list[Any]]]:
    """Accept requests in one transaction."""
    asked = [begin_create._Asked(world.ctxt, one) for one in requests]
    return world.conductor.creates._create(asked)


def active(world: World, count: int) -> list[str]:
    """Servers that were made at once."""
    made = together(world, *(a_request(world, f"s{n}") for n in range(count)))
    for _, operations in made:
        for operation in operations:
            world.conductor.runner.submit(operation)
    for number in range(count):
        world.answer(world.compute.wait_for(number + 1), ok=True, power_state=1)
    uuids = [uuid for created, _ in made for uuid in created.uuids]
    for uuid in uuids:
        world.until(uuid, "active")
    return uuids


def test_each_gets_its_own_server_operation_and_reservation(world: World) -> None:
    names = ("a", "b", "c")
    made = together(world, *(a_request(world, name, metadata={"n": name}) for name in names))
    rows = [world.row(created.uuids[0]) for created, _ in made]
    assert [(row.name, row.meta) for row in rows] == [(name, {"n": name}) for name in names]
    assert len({row.reservation_id for row in rows}) == len(names)
    assert [row.reservation_id for row in rows] == [one.reservation_id for one, _ in made]
    assert [row.operation_id for row in rows] == [one.id for _, (one,) in made]
    assert {one.begun_on.uuid for _, (one,) in made} == {row.uuid for row in rows}


def test_they_take_from_the_quota_one_after_the_other(world: World) -> None:
    quota = [world_step(world, one) for _, (one,) in together(world, *[a_request(world)] * 3)]
    assert [one["instances"]["used"] for one in quota] == [0, 1, 2]


def test_many_cost_as_many_statements_as_one(world: World) -> None:
    together(world, a_request(world))  # The first makes the project's lock.
    counts = []
    for number in (1, 5):
        with statements(world) as seen:
            together(world, *[a_request(world)] * number)
        counts.append(len(seen))
    assert counts == [7, 7]


@contextlib.contextmanager
def statements(world: World) -> Iterator[list[str]]:
    """Yield what the conductor writes and reads in transactions."""
    seen: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        seen.append(statement)

    writer = world.conductor.store._writer
    sa.event.listen(writer, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        sa.event.remove(writer, "before_cursor_execute", note)


def world_step(world: World, operation: Any) -> Any:
    rows = world.rows(schema.operation_events)
    mine = [row for row in rows if row.operation_id == operation.id]
    return next(row.detail for row in mine if row.name == "conductor_take_quota")


def test_one_over_the_quota_leaves_no_trace_of_the_others(world: World) -> None:
    with pytest.raises(QuotaExceeded):
        together(world, *[a_request(world)] * (LIMIT + 1))
    assert not world.rows(schema.servers)
    assert not world.rows(schema.operations)


def test_many_at_once_get_just_what_the_quota_has(world: World) -> None:
    creates = world.conductor.creates
    found = at_once([lambda: creates.create(world.ctxt, a_request(world))] * (LIMIT + 4))
    refused = [one for one in found if isinstance(one, QuotaExceeded)]
    assert len(refused) == 4
    assert len(world.rows(schema.servers)) == LIMIT
    answered = [one[0].uuids[0] for one in found if not isinstance(one, QuotaExceeded)]
    assert sorted(answered) == sorted(row.uuid for row in world.rows(schema.servers))


def test_one_with_a_network_that_is_gone_refuses_nobody_else(world: World) -> None:
    creates = world.conductor.creates
    wrong = a_request(world, networks=(RequestedNetwork("00000000-no-such-network"),))
    works = [lambda: creates.create(world.ctxt, a_request(world))] * 5
    found = at_once([*works, lambda: creates.create(world.ctxt, wrong)])
    assert isinstance(found[-1], NotFound)
    assert len(world.rows(schema.servers)) == 5


def test_hosts_vmids_and_addresses_are_given_once(world: World) -> None:
    uuids = active(world, 8)
    rows = [world.row(uuid) for uuid in uuids]
    assert len({row.vmid for row in rows}) == 8
    ports = world.rows(schema.ports)
    assert len({port.mac for port in ports}) == len({port.server_uuid for port in ports}) == 8
    journal = world.rows(schema.vmid_journal)
    named = {one.vmid: one.server_uuid for one in journal if one.server_uuid is not None}
    assert named == {row.vmid: row.uuid for row in rows}
    decided = collections.Counter(row.server_uuid for row in world.rows(schema.decisions))
    assert set(decided.values()) == {1}


def test_decisions_that_are_written_together_share_no_vmid(world: World) -> None:
    made = together(world, *[a_request(world)] * 4)
    placed = []
    commits = Commits(world.conductor.cloud, lambda connection, some: placed.append(len(some)))
    chosen = [
        Chosen(one, one.begun_on, Decision(one.server_uuid, host, f"uuid-{host}"), clock.utcnow())
        for (_, (one,)), host in zip(made, ["pve1", "pve2", "pve1", "pve9"], strict=True)
    ]
    *moved, gone = commits.write(chosen)
    assert len({server.vmid for _, server in moved}) == 3
    assert [server.host for _, server in moved] == ["pve1", "pve2", "pve1"]
    assert gone == "it is no compute host any more"
    assert placed == [3]
    rows = [world.row(server.uuid) for _, server in moved]
    assert [(row.task_state, row.vmid) for row in rows] == [
        ("networking", server.vmid) for _, server in moved
    ]
    assert len(world.rows(schema.decisions)) == 3


def test_vmids_in_a_row_leave_out_those_that_are_taken(world: World) -> None:
    store, world.leaves = world.conductor.store, {"vmid_without_owner"}
    low = store.run(lambda c: vmids.bands(c)["sim1"][0])

    def reserve(connection: Any) -> list[int]:
        vmids.hold(connection, "sim1", low + 1, "other", None)
        return vmids.reserve_all(connection, "sim1", [(f"s{n}", n) for n in range(3)])

    assert store.run(reserve) == [low, low + 2, low + 3]
    high = low + 4
    store.run(lambda c: vmids.set_band(c, "sim1", low, high))
    assert store.run(lambda c: vmids.reserve_all(c, "sim1", [("last", 9)])) == [low + 4]
    with pytest.raises(vmids.BandExhausted):
        store.run(lambda c: vmids.reserve_all(c, "sim1", [("a", 1), ("b", 2)]))
    # Those at its end, and then from its beginning.
    store.run(lambda c: vmids.free(c, "sim1", low))
    store.run(lambda c: vmids.set_band(c, "sim1", low, high + 1))
    found = store.run(lambda c: vmids.reserve_all(c, "sim1", [("a", 1), ("b", 2)]))
    assert sorted(found) == [low, high + 1]


def test_deletes_at_once_end_each_server_once(world: World) -> None:
    uuids = active(world, 6)
    deletes, stranger = world.conductor.deletes, RequestContext(user_id="x", project_id="q")
    locked = uuids[5]
    world.conductor.store.run(
        lambda c: c.execute(
            schema.servers.update()
            .where(schema.servers.c.uuid == locked)
            .values(locked_by="admin")
        )
    )
    works = [lambda uuid=uuid: deletes.delete(world.ctxt, uuid) for uuid in (*uuids, uuids[0])]
    found = at_once([*works, lambda: deletes.delete(stranger, uuids[1])])
    assert isinstance(found[5], ServerLocked)
    assert isinstance(found[7], ServerNotFound)
    # A second delete of the same server is in progress already.
    assert [found[0], found[6]].count(None) == 1
    begun = [one for one in (*found[:5], found[6]) if one is not None]
    assert {one.server_uuid for one in begun} == set(uuids[:5])
    for operation in begun:
        world.conductor.runner.submit(operation)
    for number in range(5):
        command = world.compute.wait_for(7 + number)
        world.answer(command, ok=True, gone=True)
    for uuid in uuids[:5]:
        world.until(uuid, "deleted")
    assert world.row(locked).vm_state == "active"


def test_a_delete_of_the_batch_is_answered_as_one_alone(world: World) -> None:
    uuids = active(world, 3)
    asked = [begin_delete._Asked(world.ctxt, uuid) for uuid in (uuids[0], uuids[0], *uuids[1:])]
    found = world.conductor.deletes._begin(asked)
    assert [isinstance(one, Apart) for one in found] == [True, True, False, False]
    begun = [one for one in found if not isinstance(one, Apart) and one is not None]
    assert [one.begun_on.uuid for one in begun] == uuids[1:]
    assert {world.row(uuid).task_state for uuid in uuids[1:]} == {"deleting"}
    states = {row.id: row.state for row in world.rows(schema.operations)}
    assert {states[one.id] for one in begun} == {OperationState.RUNNING}
    for operation in begun:
        world.conductor.runner.submit(operation)
    for number in (4, 5):
        world.answer(world.compute.wait_for(number), ok=True, gone=True)
    for uuid in uuids[1:]:
        world.until(uuid, "deleted")


def test_creates_whose_commit_was_lost_are_not_made_twice(world: World) -> None:
    writer, creates = world.conductor.store._writer, world.conductor.creates
    began, go = threading.Event(), threading.Event()
    losing: list[bool] = []

    def lose(connection: Any) -> None:
        """Hold the first transaction until others wait, and lose the answer to the next one."""
        if not began.is_set():
            began.set()
            assert go.wait(30)
        elif not losing:
            losing.append(True)
            connection.connection.dbapi_connection.commit()
            connection.invalidate()
            error = OSError("the server closed the connection")
            raise sa.exc.OperationalError("", {}, error, connection_invalidated=True)

    sa.event.listen(writer, "commit", lose)
    try:
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            first = pool.submit(creates.create, world.ctxt, a_request(world, "first"))
            assert began.wait(30)
            others = [
                pool.submit(creates.create, world.ctxt, a_request(world, f"s{number}"))
                for number in range(4)
            ]
            [line] = creates._combining._lines
            waiting.eventually(lambda: len(line.waiting) == 4)
            go.set()
            assert first.result(30)
            errors = [one.exception(30) for one in others]
    finally:
        sa.event.remove(writer, "commit", lose)
    assert [type(one) for one in errors] == [Unavailable] * 4
    assert {one.details["outcome"] for one in errors if isinstance(one, Unavailable)} == {UNKNOWN}
    names = sorted(row.name for row in world.rows(schema.servers))
    assert names == ["first", "s0", "s1", "s2", "s3"]


def test_what_came_at_once_is_continued_by_another_conductor(world: World) -> None:
    made = together(world, *(a_request(world, f"s{number}") for number in range(4)))
    world.conductor.store.run(
        lambda c: c.execute(schema.operations.update().values(lease_expires_at=clock.after(-60)))
    )
    second = world.add_conductor("c2")
    second.runner.look()
    for number in range(4):
        world.answer(world.compute.wait_for(number + 1), ok=True, power_state=1)
    for created, _ in made:
        world.until(created.uuids[0], "active")
