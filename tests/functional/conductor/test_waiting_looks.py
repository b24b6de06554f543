"""What a look at those that wait for room reads again, and what it writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from common import clock
from common.resources.hints import WAIT
from conductor.servers.waiting.waits import Waits
from conductor.store.ledger import leases
from db import schema
from tests.functional.conductor.harness import Mortal, World

WAITING = schema.waiting_builds
#: room for the build that waits, and a little more
FREE = {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 2}


class Room(World):
    """A cloud that has no host at first."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.scheduler.hosts = []
        self.now = 0.0
        self.waits = Waits(self.conductor.cloud, lambda: self.now)

    def free(self, room: Mapping[str, int]) -> None:
        """Have pve1 have so much room."""
        self.placement.free = {"uuid-pve1": room}

    def wait(self) -> None:
        """Have a server wait that was tried just now."""
        self.accept(scheduler_hints={WAIT: "600"})
        for one in self.due():
            self.conductor.runner._flows["create"].resume(one, fresh=True)
        assert len(self.rows(WAITING)) == 1

    def due(self) -> list[Any]:
        self.make_due()
        return self.conductor.store.run(lambda c: leases.due(c, "c1", 60, 10, ["create"]))

    def change(self, **values: Any) -> None:
        self.conductor.store.run(lambda c: c.execute(WAITING.update().values(**values)))

    def look(self) -> bool:
        """Look; return whether the build that waits was woken."""
        self.waits.look()
        [row] = self.rows(WAITING)
        return row.woken_at is not None


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Room]:
    made = Room(tmp_path)
    made.wait()
    yield made
    made.conductor.store.run(lambda c: c.execute(WAITING.delete()))
    made.close()


def test_a_host_that_refused_is_tried_once_it_may_judge_otherwise(world: Room) -> None:
    """Also where it had no room when that became known."""
    world.change(refused={"uuid-pve1": FREE})
    world.free(FREE)
    assert not world.look()
    world.free({})
    world.conductor.cloud.news.changed()
    assert not world.look()
    world.free(FREE)
    assert world.look()


def test_what_changed_is_looked_at_again_once_schedulers_know_it(world: Room) -> None:
    """A decision may come before the scheduler knows what the conductor did."""
    world.free(FREE)
    world.conductor.cloud.news.changed()
    assert world.look()
    refused = {"refused": {"uuid-pve1": FREE}, "woken_at": None}
    world.change(**refused)
    assert not world.look()
    for again in (True, False):
        world.now += 11
        assert world.look() == again
        world.change(**refused)


def test_who_asked_first_is_first_in_any_order_of_decisions(tmp_path: Path) -> None:
    world = Room(tmp_path)
    for _ in range(3):
        world.accept(scheduler_hints={WAIT: "600"})
    asked = world.due()
    for one in reversed(asked):
        world.conductor.runner._flows["create"].resume(one, fresh=True)
    rows = sorted(world.rows(WAITING), key=lambda row: row.since)
    assert [row.operation_id for row in rows] == sorted(one.id for one in asked)
    assert all(row.until > row.since for row in rows)
    world.conductor.store.run(lambda c: c.execute(WAITING.delete()))
    world.close()


def test_a_host_that_is_kept_is_written_once(world: Room) -> None:
    half = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
    world.change(since=clock.after(-500), needs=FREE)
    world.free(half)
    written = Mortal(world.conductor.store)
    for _ in range(3):
        assert not world.look()
        assert [row.kept for row in world.rows(WAITING)] == ["uuid-pve1"]
        assert written.commits == 1


@pytest.mark.parametrize(
    "nowhere",
    [{"zone": "elsewhere"}, {"refused": {"uuid-pve1": FREE, "uuid-pve2": FREE}}],
    ids=lambda one: next(iter(one)),
)
def test_one_that_no_host_could_take_has_not_all_hosts_compared(
    world: Room, nowhere: dict[str, Any]
) -> None:
    """Not by each look: it is known until hosts are read again, or judge otherwise."""
    world.change(since=clock.after(-500), needs=FREE, **nowhere)
    world.free({"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1})

    def compares_all() -> bool:
        world.placement.asked.clear()
        world.look()
        return world.placement.asked == [{"VCPU": 1}]

    assert [compares_all() for _ in range(3)] == [True, False, False]
    world.now += 61
    assert [compares_all() for _ in range(2)] == [True, False]
    world.conductor.cloud.news.changed()
    assert compares_all()
