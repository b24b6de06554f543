"""Schedulers at once: they spread what they place and give nothing twice; none waits for ever."""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
from typing import Any

from common import clock, config, ids
from common.errors import Unavailable
from common.messages.facts import Heartbeat
from common.messages.scheduling import Decision, RequestSpec
from placement.client import PlacementClient
from scheduler import config as scheduler_config
from scheduler.hosts.reported import HostTable
from scheduler.select import Decider
from scheduler.service import load_filters, load_weighers
from scheduler.view import View
from tests.unit.scheduler.decide.test_choose import a_host, a_request

SCHEDULERS = 8
HOSTS = {f"pve{number}": ids.new_uuid() for number in range(8)}
SLOTS_PER_HOST = 4
VCPUS = 4
TURNS = 50
MANY = 100_000


def a_scheduler(client: PlacementClient, **known: Any) -> Decider:
    conf = config.load([scheduler_config.register])
    table, now = HostTable(), clock.utcnow()
    facts = tuple(
        dataclasses.replace(a_host(n).facts, uuid=uuid, **known) for n, uuid in HOSTS.items()
    )
    table.update(Heartbeat("w", now, tuple(HOSTS), facts))
    view = View(client, table, 1000)
    return Decider(conf, client, view, load_filters(conf), load_weighers(conf))


def the_hosts(client: PlacementClient, vcpus: int, **known: Any) -> list[Decider]:
    for name, uuid in HOSTS.items():
        client.ensure_provider(uuid, name)
        room = {"VCPU": {"total": vcpus}, "MEMORY_MB": {"total": MANY}, "DISK_GB": {"total": MANY}}
        client.set_inventory(uuid, room)
    return [a_scheduler(client, **known) for _ in range(SCHEDULERS)]


def decided(deciders: list[Decider], count: int) -> list[Decision]:
    """Have as many servers placed, all at once."""
    asked = [
        a_request(server_uuid=ids.new_uuid(), vcpus=VCPUS, memory_mib=0, disk_gib=0)
        for _ in range(count)
    ]

    def ask(number: int, request: RequestSpec) -> Decision:
        for _ in range(TURNS):
            try:
                return deciders[number % SCHEDULERS].decide(request, ())
            except Unavailable:
                continue
        raise AssertionError("nobody decides about this server")

    with concurrent.futures.ThreadPoolExecutor(SCHEDULERS) as pool:
        return list(pool.map(ask, range(count), asked))


def test_a_hundred_at_once_are_spread(client: PlacementClient) -> None:
    decisions = decided(the_hosts(client, 16 * 100), 100)
    placed = collections.Counter(decision.host for decision in decisions)
    # 12 or 13 where each sees the one before; those at the same moment do not.
    assert set(placed) == set(HOSTS)
    assert max(placed.values()) <= 18, placed


def test_eight_schedulers_race_for_the_last_room(client: PlacementClient) -> None:
    room = len(HOSTS) * SLOTS_PER_HOST
    decisions = decided(the_hosts(client, VCPUS * SLOTS_PER_HOST), 2 * room)
    placed = collections.Counter(decision.host for decision in decisions if decision.host)
    assert placed == dict.fromkeys(HOSTS, SLOTS_PER_HOST)
    for uuid in HOSTS.values():
        assert client.provider_usages(uuid)["VCPU"] == VCPUS * SLOTS_PER_HOST
    lost = [decision for decision in decisions if decision.host is None]
    assert len(lost) == room
    for decision in lost:
        assert decision.counts == {"resources": len(HOSTS)}
        assert client.allocations_of(decision.server_uuid).by_provider == {}
    results = {claim["result"] for decision in decisions for claim in decision.claims}
    assert results <= {"claimed", "taken by another", "had no room left"}
