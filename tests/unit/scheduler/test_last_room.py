"""Schedulers that race for the last room lose hardly a claim to each other.

Threads take turns in an order that a seed decides, so every run is the same; what is counted are
claims, not times.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from common import clock, config
from common.errors import Unavailable
from common.messages.facts import Heartbeat
from common.messages.scheduling import Decision, RequestSpec
from placement.client import PlacementClient
from placement.messages import Candidates, First, NewClaim, Usage
from scheduler import config as scheduler_config
from scheduler.hosts.reported import HostTable
from scheduler.select import TAKEN, Decider
from scheduler.service import load_filters, load_weighers
from scheduler.view import View
from tests.unit.scheduler.decide.test_choose import a_host, a_request

SCHEDULERS = 8
THREADS = 2
SLOTS_PER_HOST = 8
VCPUS = 4


class Turns:
    """Lets one of several threads run at a time; a seed says which one is next."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._changed = threading.Condition()
        self._running: list[int] = []
        self._now = -1

    def pause(self, number: int) -> None:
        """Let others run."""
        with self._changed:
            self._next()
            self._changed.wait_for(lambda: self._now == number)

    def _next(self) -> None:
        self._now = self._dice.choice(self._running) if self._running else -1
        self._changed.notify_all()

    def run(self, works: Sequence[Callable[[int], None]]) -> None:
        """Run all of them to their ends."""
        self._running = list(range(len(works)))
        threads = [
            threading.Thread(target=self._one, args=(number, work), daemon=True)
            for number, work in enumerate(works)
        ]
        for thread in threads:
            thread.start()
        with self._changed:
            self._next()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()

    def _one(self, number: int, work: Callable[[int], None]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._now == number)
        try:
            work(number)
        finally:
            with self._changed:
                self._running.remove(number)
                self._next()


class World(PlacementClient):
    """Hosts with room for some servers each, as placement answers, and threads that claim it."""

    def __init__(self, seed: int, hosts: int, slots: int = SLOTS_PER_HOST) -> None:
        self.turns = Turns(seed)
        self.names = tuple(f"pve{number}" for number in range(hosts))
        self.slots = slots
        self.used: Counter[str] = Counter()
        self.mine = threading.local()

    def pause(self) -> None:
        self.turns.pause(self.mine.number)

    # --- the client of placement

    def candidates(
        self,
        resources: Mapping[str, int],
        required: Collection[str] = (),
        forbidden: Collection[str] = (),
        member_of: Iterable[str | Collection[str]] = (),
        in_tree: str | None = None,
        limit: int | None = None,
    ) -> Candidates:
        self.pause()
        there = [name for name in self.names if self.used[name] < self.slots]
        used = [self.used[name] * VCPUS for name in there]
        room = Usage([self.slots * VCPUS] * len(there), used)
        self.pause()
        traits = [frozenset[str]()] * len(there)
        return Candidates([f"uuid-{name}" for name in there], {"VCPU": room}, traits)

    def claim_first(self, consumer_uuid: str, provider_uuids: Sequence[str], *_: Any) -> First:
        self.pause()
        for uuid in provider_uuids:
            name = uuid.removeprefix("uuid-")
            if self.used[name] < self.slots:
                self.used[name] += 1
                return First(uuid)
        return First(None)

    def claim_many(self, claims: Sequence[NewClaim]) -> bool:
        self.pause()
        wanted = Counter(claim.provider_uuid.removeprefix("uuid-") for claim in claims)
        if any(self.used[name] + count > self.slots for name, count in wanted.items()):
            return False
        self.used.update(wanted)
        return True

    # --- the lock of a scheduler

    def lock(self) -> Any:
        return _Lock(self)

    def decider(self) -> Decider:
        conf = config.load([scheduler_config.register])
        table = HostTable()
        facts = tuple(a_host(name, vcpus=1000).facts for name in self.names)
        table.update(Heartbeat("w", clock.utcnow(), self.names, facts))
        view = View(self, table, 1000)
        how = (load_filters(conf), load_weighers(conf))
        decider = Decider(conf, self, view, *how)
        decider._turn = self.lock()
        return decider


class _Lock:
    """A lock whose holder is seen by ``Turns``."""

    def __init__(self, world: World) -> None:
        self._world, self._taken = world, False

    def acquire(self, timeout: float) -> bool:
        while self._taken:
            self._world.pause()
        self._taken = True
        return True

    def release(self) -> None:
        self._taken = False


def race(world: World, asked: Sequence[RequestSpec]) -> list[Decision]:
    """Decide about all by several schedulers at once."""
    left: Iterator[RequestSpec] = iter(asked)
    found: list[Decision] = []
    deciders = [world.decider() for _ in range(SCHEDULERS)]

    def work(number: int) -> None:
        world.mine.number = number
        for request in left:
            while True:
                try:
                    found.append(deciders[number % SCHEDULERS].decide(request, ()))
                    break
                except Unavailable:
                    world.pause()

    world.turns.run([work] * (SCHEDULERS * THREADS))
    return found


def servers(count: int) -> list[RequestSpec]:
    return [
        a_request(server_uuid=f"s{number}", vcpus=VCPUS, memory_mib=0, disk_gib=0)
        for number in range(count)
    ]


def lost_and_all(decisions: Sequence[Decision]) -> tuple[int, int]:
    """Return how many claims were lost to others, and how many were made."""
    lost = sum(claim["result"] == TAKEN for one in decisions for claim in one.claims)
    return lost, lost + sum(one.host is not None for one in decisions)


def test_of_the_claims_for_the_last_places_fewer_than_one_in_ten_is_lost() -> None:
    lost = every = 0
    for seed in range(5):
        world = World(seed, hosts=10)
        room = len(world.names) * SLOTS_PER_HOST
        decisions = race(world, servers(2 * room))
        assert world.used == dict.fromkeys(world.names, SLOTS_PER_HOST)
        assert sum(one.host is not None for one in decisions) == room
        mine, all_of_it = lost_and_all(decisions)
        lost, every = lost + mine, every + all_of_it
    assert lost * 10 < every, f"{lost} of {every}"


@pytest.mark.parametrize("slots", [1, 8])
def test_where_there_is_room_no_claim_is_lost(slots: int) -> None:
    world = World(1, hosts=400, slots=slots)
    lost, every = lost_and_all(race(world, servers(100)))
    assert every == 100
    assert lost == 0
