"""Server groups: strict policies hold in any race, and places go back with the host."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import codec
from common.context import RequestContext
from common.errors import NotFound, QuotaExceeded
from common.messages.commands import Build, Destroy
from common.messages.reports import Category, Failure
from common.messages.scheduling import Alternate, Decision, RequestSpec
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.server_groups import NewServerGroup
from conductor.rpc.servers.servers import CreateServers
from conductor.store.hosts import aggregates, registry
from conductor.store.servers import server_groups, servers
from db import engine, schema
from scheduler.decide.choose import choose
from scheduler.filters.server_groups import server_group_affinity, server_group_anti_affinity
from tests.functional.conductor.harness import IMAGE, Conductor, Placement, World
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401
from tests.unit.scheduler.decide.test_choose import a_host

FILTERS = {
    "server_group_affinity": server_group_affinity,
    "server_group_anti_affinity": server_group_anti_affinity,
}


class Herding:
    """A scheduler that gives the worst answers that are right.

    The first ``together`` questions are answered at once: to all the first host that will do, or
    to each another one, ``apart``.
    """

    def __init__(
        self, placement: Placement, hosts: tuple[str, ...], together: int = 1, apart: bool = False
    ) -> None:
        self._hosts = [a_host(name) for name in hosts]
        self._placement = placement
        self._lock = threading.Lock()
        self._left = together
        self._apart = apart
        self._barrier = threading.Barrier(together)

    def select(
        self, ctxt: RequestContext, request: RequestSpec, alternates: tuple[Alternate, ...] = ()
    ) -> Decision:
        with self._lock:
            self._left -= 1
            turn = self._left
        if turn >= 0:
            self._barrier.wait(60)
        # Over the wire, as the real one is asked.
        request = codec.load(RequestSpec, codec.loads(codec.dumps(request)))
        assert request.server_uuid not in self._placement.claims
        choice = choose(self._hosts, request, FILTERS, {})
        names = sorted(item.host.name for item in choice.ranked)
        if not names:
            reason = (
                f"No valid host was found: {dict(choice.refused['server_group_anti_affinity'])}"
            )
            return Decision(request.server_uuid, None, reason=reason)
        if self._apart and turn >= 0:
            names = names[turn:] + names[:turn]
        self._placement.claims[request.server_uuid] = names[0]
        others = tuple(Alternate(name, f"uuid-{name}", 1.0) for name in names[1:])
        claimed = ({"host": names[0], "result": "claimed"},)
        return Decision(
            request.server_uuid, names[0], f"uuid-{names[0]}", others, len(names), claims=claimed
        )

    def note_failure(self, ctxt: RequestContext, host: str) -> None:
        """Nothing is kept."""


def herd(world: World, together: int = 1, apart: bool = False) -> None:
    """All conductors of the world, also later ones, ask a herding scheduler."""
    world.scheduler = Herding(  # type: ignore[assignment]
        world.placement, world.hosts, together, apart
    )
    object.__setattr__(world.conductor.cloud, "scheduler", world.scheduler)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    herd(made)
    made.conductor.runner.start()
    yield made
    close(made)


def close(world: World) -> None:
    for conductor in world.conductors:
        if conductor.runner.periodic.alive:
            conductor.runner.stop()


def a_group(world: World, policy: str = "anti-affinity", **rules: int) -> str:
    new = NewServerGroup("p", "u", "g", policy, rules)
    return world.conductor.store.run(lambda c: server_groups.create(c, new))


def places(world: World) -> list[tuple[str, int]]:
    return sorted((row.host, row.slot) for row in world.rows(schema.server_group_places))


def claims(world: World) -> list[list[Any]]:
    return [row.body["claims"] for row in world.rows(schema.decisions)]


def test_anti_affinity_spreads_and_says_why_there_is_no_more_room(world: World) -> None:
    group = a_group(world)
    uuids = [world.create(server_group=group)[0] for _ in range(2)]
    for number in (1, 2):
        world.answer(world.compute.wait_for(number), ok=True, power_state=1)
    for uuid in uuids:
        world.until(uuid, "active")
    assert places(world) == [("pve1", 0), ("pve2", 0)]
    (third,) = world.create(server_group=group)
    world.until(third, "error")
    (fault,) = world.rows(schema.faults)
    assert "1 server of its anti-affinity group is here, 1 allowed" in fault.message
    assert set(world.placement.claims) == set(uuids)


def test_a_rule_allows_more_on_a_host(world: World) -> None:
    group = a_group(world, max_server_per_host=2)
    for _ in range(4):
        world.create(server_group=group)
    world.compute.wait_for(4)
    assert places(world) == [("pve1", 0), ("pve1", 1), ("pve2", 0), ("pve2", 1)]


def test_affinity_keeps_together_until_the_last_one_is_gone(world: World) -> None:
    group = a_group(world, "affinity")
    uuids = [world.create(server_group=group)[0] for _ in range(2)]
    for number in (1, 2):
        world.answer(world.compute.wait_for(number), ok=True, power_state=1)
    for uuid in uuids:
        world.until(uuid, "active")
    assert places(world) == [("pve1", 0), ("pve1", 1)]
    for number, uuid in enumerate(uuids, 3):
        assert len(world.rows(schema.server_group_anchors)) == 1
        world.act(uuid, "delete")
        command = world.compute.wait_for(number)
        assert isinstance(command, Destroy)
        world.answer(command, ok=True, gone=True)
        world.until(uuid, "deleted")
    assert world.rows(schema.server_group_anchors) == []
    assert places(world) == []


def test_a_failed_attempt_gives_its_place_back(world: World) -> None:
    group = a_group(world, "affinity")
    (uuid,) = world.create(server_group=group)
    failure = Failure(Category.CREATION_FAILED, "boom", host="pve1")
    for attempt in (1, 2, 3):
        command = world.compute.wait_for(attempt)
        assert isinstance(command, Build)
        assert places(world) == [(command.placed.host, 0)]
        world.answer(command, ok=False, failure=failure, gone=True)
    world.until(uuid, "error")
    assert places(world) == []
    assert world.rows(schema.server_group_anchors) == []


def test_a_place_stays_until_the_machine_was_seen_gone(world: World) -> None:
    group = a_group(world)
    (uuid,) = world.create(server_group=group)
    left = Failure(Category.TASK_TIMEOUT, "slow", clean=False, left=("VM 100000",))
    world.answer(world.compute.wait_for(1), ok=False, failure=left)
    world.until(uuid, "error")
    assert places(world) == [("pve1", 0)]
    world.make_due()
    world.answer(world.compute.wait_for(2), ok=True, gone=True)
    world.until_operation("failed")
    assert places(world) == []


def test_servers_of_a_deleted_group_are_in_none(world: World) -> None:
    group = a_group(world)
    (uuid,) = world.create(server_group=group)
    world.answer(world.compute.wait_for(1), ok=True, power_state=1)
    world.until(uuid, "active")
    store = world.conductor.store
    with pytest.raises(NotFound):
        store.run(lambda c: server_groups.delete(c, group, "another"))
    store.run(lambda c: server_groups.delete(c, group, "p"))
    assert world.row(uuid).server_group_uuid is None
    assert places(world) == []
    with pytest.raises(NotFound):
        world.create(server_group=group)


def test_only_one_s_own_group_and_not_too_many(world: World) -> None:
    group = a_group(world)
    other = world.conductor.store.run(
        lambda c: server_groups.create(c, NewServerGroup("q", "v", "g", "affinity"))
    )
    with pytest.raises(NotFound, match=f"Instance group {other} could not be found."):
        world.create(server_group=other)
    limit = {"project_id": "p", "resource": "server_group_members", "hard_limit": 2}
    world.conductor.store.run(lambda c: c.execute(schema.quota_limits.insert(), limit))
    with pytest.raises(QuotaExceeded, match="Quota exceeded, too many servers in group"):
        world.create(server_group=group, min_count=3, max_count=3)
    world.create(server_group=group, min_count=2, max_count=2)
    with pytest.raises(QuotaExceeded):
        world.create(server_group=group)
    assert len(world.rows(schema.servers)) == 2


def test_a_server_that_was_moved_takes_its_place_along(world: World) -> None:
    group = a_group(world)
    uuids = []
    for number in (1, 2):
        uuids += world.create(server_group=group)
        world.compute.wait_for(number)
    store = world.conductor.store

    def move(uuid: str, host: str) -> str | None:
        return store.run(lambda c: server_groups.follow(c, servers.get(c, uuid), host))

    assert move(uuids[1], "pve3") is None
    assert places(world) == [("pve1", 0), ("pve3", 0)]
    assert "anti-affinity" in str(move(uuids[1], "pve1"))
    assert places(world) == [("pve1", 0)]


def test_a_host_that_changed_its_zone_in_between_is_lost(world: World) -> None:
    store = world.conductor.store
    number = store.run(lambda c: aggregates.create(c, "a", "az2"))
    store.run(lambda c: aggregates.add_host(c, number, "pve2"))
    facts, _ = store.run(lambda c: registry.host(c, "pve2", lock=True))
    assert facts.availability_zone == "az2"
    (uuid,) = world.create(availability_zone="az2")
    # The scheduler knows of no zone and says pve1 for ever: nothing is built there.
    world.until_paused()
    assert (world.row(uuid).host, world.placement.claims) == (None, {})


@pytest.mark.parametrize(
    ("policy", "rules", "spread"),
    [
        ("anti-affinity", {}, [1] * 8),
        ("anti-affinity", {"max_server_per_host": 3}, [3, 3, 2]),
        ("affinity", {}, [8]),
    ],
)
def test_eight_conductors_race_for_a_group(
    postgres_url: str,  # noqa: F811
    tmp_path: Path,
    policy: str,
    rules: dict[str, int],
    spread: list[int],
) -> None:
    world = World(tmp_path, url=postgres_url, hosts=tuple(f"pve{n}" for n in range(1, 9)))
    herd(world, together=8, apart=policy == "affinity")
    try:
        racers = [world.conductor, *(world.add_conductor(f"c{n}") for n in range(2, 9))]
        group = a_group(world, policy, **rules)
        uuids = [begin(racer, world, group) for racer in racers]
        world.compute.wait_for(8)
        for uuid in uuids:
            world.until(uuid, "building", "spawning")
        there = world.rows(schema.server_group_places)
        assert {row.server_uuid: row.host for row in there} == {
            uuid: world.row(uuid).host for uuid in uuids
        }
        counts = [len({r.slot for r in there if r.host == host}) for host in world.hosts]
        assert sorted(filter(None, counts), reverse=True) == spread
        # Those that lost a host say so, and went on.
        lost = [c for one in claims(world) for c in one if "group" in c["result"]]
        assert len(lost) >= (7 if policy == "affinity" else 8 - spread[0])
        assert world.placement.claims == {uuid: world.row(uuid).host for uuid in uuids}
    finally:
        for conductor in world.conductors:
            conductor.runner.stop()
            conductor.store._writer.dispose()
            conductor.store._reader.dispose()


def begin(racer: Conductor, world: World, group: str) -> str:
    flavor = FlavorSnapshot("1", "m1.tiny", 1, 512, 1)
    request = CreateServers("web", flavor, IMAGE, networks=(), server_group=group)
    created, (operation,) = racer.creates.create(world.ctxt, request)
    racer.runner.submit(operation)
    return created.uuids[0]


def test_the_database_itself_refuses(postgres_url: str) -> None:  # noqa: F811
    writer = engine.writer(postgres_url)
    schema.metadata.create_all(writer)
    place = {"group_uuid": "g", "host": "pve1", "slot": 0}
    anchor = {"group_uuid": "g", "host": "pve1"}
    with writer.begin() as connection:
        connection.execute(schema.server_group_places.insert().values(server_uuid="a", **place))
        connection.execute(schema.server_group_anchors.insert().values(**anchor))
    for statement in (
        schema.server_group_places.insert().values(server_uuid="b", **place),
        schema.server_group_places.insert().values(server_uuid="a", **{**place, "slot": 1}),
        schema.server_group_anchors.insert().values(**{**anchor, "host": "pve2"}),
    ):
        with pytest.raises(sa.exc.IntegrityError), writer.begin() as connection:
            connection.execute(statement)
    writer.dispose()
