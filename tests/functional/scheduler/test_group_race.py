"""Eight schedulers and eight conductors race for the places of one group, on real placement."""

from __future__ import annotations

import collections
import itertools
import threading
from pathlib import Path

import pytest

from common import clock, codec
from common.context import RequestContext
from common.messages.scheduling import Alternate, Decision, RequestSpec
from db import schema
from placement.client import PlacementClient
from scheduler.select import Decider
from tests.functional.conductor.harness import IMAGE, World
from tests.functional.conductor.test_server_groups import a_group, begin, close
from tests.functional.scheduler.test_race import HOSTS, the_hosts

SERVERS = 24


class Eight:
    """Real schedulers, asked in turn; each has its own view of the same placement."""

    def __init__(self, deciders: list[Decider]) -> None:
        self._turns = itertools.cycle(deciders)
        self._lock = threading.Lock()

    def select(
        self, ctxt: RequestContext, request: RequestSpec, alternates: tuple[Alternate, ...] = ()
    ) -> Decision:
        """As over the wire."""
        with self._lock:
            decider = next(self._turns)
        return decider.decide(
            codec.load(RequestSpec, codec.loads(codec.dumps(request))), alternates
        )

    def note_failure(self, ctxt: RequestContext, host: str) -> None:
        """Nothing is kept."""


RACES = (
    ("anti-affinity", {}, 8, 1),
    ("anti-affinity", {"max_server_per_host": 2}, 8, 2),
    ("affinity", {}, 1, SERVERS),
)


@pytest.mark.parametrize(
    ("url", "policy", "rules", "hosts", "each"),
    [
        *(("postgres", *race) for race in RACES),
        ("sqlite", *RACES[0]),
        *(pytest.param("sqlite", *race, marks=pytest.mark.long) for race in RACES[1:]),
    ],
    indirect=["url"],
)
def test_a_strict_group_holds(
    client: PlacementClient,
    postgres_url: str,
    tmp_path: Path,
    policy: str,
    rules: dict[str, int],
    hosts: int,
    each: int,
) -> None:
    world = World(tmp_path, url=postgres_url, hosts=tuple(HOSTS))
    try:
        racers = [world.conductor, *(world.add_conductor(f"c{n}") for n in range(2, 9))]
        scheduler = Eight(the_hosts(client, 1000, images=(IMAGE,)))
        for racer in racers:
            object.__setattr__(racer.cloud, "scheduler", scheduler)
            object.__setattr__(racer.cloud, "placement", client)
            racer.runner.start()
        limits = [
            {"project_id": "p", "resource": resource, "hard_limit": -1}
            for resource in ("instances", "cores", "ram", "server_group_members")
        ]
        world.conductor.store.run(lambda c: c.execute(schema.quota_limits.insert(), limits))
        group = a_group(world, policy, **rules)
        uuids = [begin(racers[n % 8], world, group) for n in range(SERVERS)]
        until_nobody_is_placed(world)
        placed = [world.row(uuid) for uuid in uuids if world.row(uuid).vm_state == "building"]
        lost = [world.row(uuid) for uuid in uuids if world.row(uuid).vm_state == "error"]
        assert collections.Counter(row.host for row in placed) == dict.fromkeys(
            [row.host for row in placed], each
        )
        assert (len({row.host for row in placed}), len(placed)) == (hosts, hosts * each)
        assert len(lost) == SERVERS - hosts * each
        there = {row.server_uuid: row.host for row in world.rows(schema.server_group_places)}
        assert there == {row.uuid: row.host for row in placed}
        for row in placed:
            assert set(client.allocations_of(row.uuid).by_provider) == {HOSTS[row.host]}
    finally:
        close(world)
        for conductor in world.conductors:
            conductor.store._writer.dispose()
            conductor.store._reader.dispose()


def until_nobody_is_placed(world: World) -> None:
    """Wait until each server has a host, or none."""
    deadline, tick = clock.after(120), threading.Event()
    while any(
        (row.vm_state, row.task_state) not in {("building", "spawning"), ("error", None)}
        for row in world.rows(schema.servers)
    ):
        assert clock.utcnow() < deadline, [
            (row.vm_state, row.task_state) for row in world.rows(schema.servers)
        ]
        tick.wait(0.05)
        world.beat()
