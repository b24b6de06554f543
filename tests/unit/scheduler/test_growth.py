"""The cost of a decision grows with its candidates, not with the hosts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

from common import clock, config, ids
from common.messages.facts import Heartbeat
from common.resources.aggregates import AllAggregates
from placement.messages import Candidates, First, Usage
from scheduler import config as scheduler_config
from scheduler.hosts.reported import HostTable
from scheduler.select import Decider
from scheduler.service import load_filters, load_weighers
from scheduler.view import View
from tests.unit.scheduler.decide.test_choose import a_host, a_request

LIMIT = 20
FEW, MANY = 100, 2_000


class Placement:
    """Offers the first hosts, so many as it is asked for."""

    def __init__(self, hosts: int) -> None:
        self._uuids = [f"uuid-h{number}" for number in range(hosts)]

    def candidates(
        self, resources: Mapping[str, int], *_: Any, limit: int | None = None, **__: Any
    ) -> Candidates:
        there = self._uuids[:limit]
        room = Usage([64] * len(there), [0] * len(there))
        return Candidates(there, dict.fromkeys(resources, room), [frozenset()] * len(there))

    def claim_first(self, consumer: str, providers: Sequence[str], *_: Any) -> First:
        return First(providers[0])


class Cloud:
    """A scheduler that knows so many hosts."""

    def __init__(self, hosts: int) -> None:
        self.names = tuple(f"h{number}" for number in range(hosts))
        self.table = HostTable()
        facts = tuple(a_host(name, vcpus=64, memory_mib=64).facts for name in self.names)
        self.table.update(Heartbeat("w", clock.utcnow(), self.names, facts))
        self.table.update_aggregates(AllAggregates(1))
        conf = config.load([scheduler_config.register])
        placement: Any = Placement(hosts)
        self.decider = Decider(
            conf,
            placement,
            View(placement, self.table, LIMIT),
            load_filters(conf),
            load_weighers(conf),
        )
        self.decide()  # what is computed once for new hosts

    def decide(self) -> None:
        request = a_request(server_uuid=ids.new_uuid(), vcpus=1, memory_mib=1, disk_gib=1)
        assert self.decider.decide(request, ()).host in self.names


def lines(work: Callable[[], None]) -> int:
    """Return how many lines of Python run, those of loops each time."""
    found = 0

    def line(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal found
        found += 1
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        work()
    finally:
        sys.settrace(before)
    return found


def test_a_decision_takes_as_many_steps_at_any_number_of_hosts() -> None:
    few, many = (lines(Cloud(hosts).decide) for hosts in (FEW, MANY))
    assert few > LIMIT
    assert many - few < LIMIT


def test_a_heartbeat_takes_as_many_steps_as_it_has_hosts() -> None:
    def beaten(hosts: int) -> int:
        cloud = Cloud(hosts)
        beat = Heartbeat("w", clock.utcnow(), cloud.names[:LIMIT])

        def work() -> None:
            cloud.table.update(beat)
            cloud.decide()

        work()
        return lines(work)

    assert beaten(MANY) - beaten(FEW) < LIMIT
