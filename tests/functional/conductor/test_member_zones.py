"""Groups over zones: a zone that is lost gets no members, and its share once it is back."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from common import clock
from common.context import internal
from common.messages.scheduling import RequestSpec
from conductor.endpoints.hosts.aggregates import AggregateEndpoint, Notifier
from conductor.rpc.groups import GroupChanges
from conductor.store.hosts import aggregates
from conductor.store.ledger import group_news
from db import schema
from tests.functional.conductor.test_lost_members import Site

ZONES = {"a": "pve1", "b": "pve2"}


class Zoned(Site):
    """Two zones with a host each."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.world.conductor.store.run(self._make_zones)
        self.world.scheduler.hosts_for = self._in_zone
        self.zones = dict(ZONES)
        """Zone → its host."""
        self.full: set[str] = set()
        """Zones without room."""
        self.most = 0
        """The most members that there were when one was created."""

    @staticmethod
    def _make_zones(connection: Any) -> None:
        for zone, host in ZONES.items():
            aggregates.add_host(connection, aggregates.create(connection, zone, zone), host)

    def _in_zone(self, request: RequestSpec) -> list[str]:
        self.most = max(self.most, len(self.members()))
        zone = str(request.availability_zone)
        return [] if zone in self.full else [self.zones[zone]]

    def by_zone(self) -> Mapping[str, int]:
        """How many servers work in each zone."""
        working = [one for one in self.servers().values() if one.vm_state == "active"]
        return collections.Counter(one.availability_zone for one in working)

    def lose_zone(self) -> str:
        """A group over both zones, whose members in the second one are replaced in the first."""
        group = self.create(4, zones="a,b")
        self.settled(group, 4)
        assert self.by_zone() == {"a": 2, "b": 2}
        lost = {uuid for uuid, one in self.servers().items() if one.host == "pve2"}
        self.lose("pve2")
        self.mark("pve2")
        self.world._wait(
            lambda: (
                [one.server_uuid in lost for one in self.members()],
                self.group(group).status,
                self.open_about(group),
            ),
            lambda found: found == ([False] * 4, "ACTIVE", []),
        )
        return group

    def back(self) -> None:
        """The second zone works again."""
        self.world.beat()
        self.mark("pve2", down=False)
        self.hasten()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Zoned]:
    made = Zoned(tmp_path)
    yield made
    made.close()


def test_members_return_to_a_zone_that_is_back(site: Zoned) -> None:
    group = site.lose_zone()
    living = {one.server_uuid for one in site.members()}
    assert {site.world.row(uuid).availability_zone for uuid in living} == {"a"}
    site.most = 0
    site.back()
    # Those that were left there are removed, too.
    site.world._wait(
        lambda: (site.by_zone(), len(site.servers())), lambda f: f == ({"a": 2, "b": 2}, 4)
    )
    site.settled(group, 4)
    assert site.group(group).status_reason == "4 of 4 members work."
    assert site.most == 5
    # Two were moved, one after the other.
    assert len(living & set(site.servers())) == 2


def test_a_zone_without_room_is_no_reason_to_try_for_ever(site: Zoned) -> None:
    group = site.lose_zone()
    site.full.add("b")
    site.back()
    site.world._wait(lambda: site.group(group).failures, lambda count: count == 1)
    site.world._wait(lambda: len(site.servers()), lambda count: count == 4)
    site.settled(group, 4)
    assert (site.by_zone(), site.group(group).failures) == ({"a": 4}, 1)
    assert site.group(group).halted is None
    # By hand it is tried again.
    site.full.clear()
    site.rpc.tend_group(site.world.ctxt, group, "group-recover")
    site.world._wait(site.by_zone, lambda found: found == {"a": 2, "b": 2})
    site.settled(group, 4)


def test_a_group_that_may_not_grow_is_left_uneven(site: Zoned) -> None:
    group = site.lose_zone()
    row = site.group(group)
    config = {**row.config, "micronova.max_surge": 0, "micronova.max_unavailable": 1}
    site.rpc.change_group(site.world.ctxt, group, GroupChanges(config=config))
    site.back()
    site.settled(group, 4)
    assert site.by_zone() == {"a": 4}


def evened_out(site: Zoned, group: str, **zones: int) -> None:
    """Wait until so many members work in each zone."""
    site.hasten()
    site.world._wait(
        lambda: (site.by_zone(), len(site.servers())), lambda found: found == (zones, 4)
    )
    site.settled(group, 4)


def test_members_return_once_an_agent_reports_again(site: Zoned) -> None:
    long_ago = schema.services.update().where(schema.services.c.host == "pve2")
    silent = long_ago.values(last_seen_at=clock.after(-3600))
    site.world.conductor.store.run(lambda c: c.execute(silent))
    group = site.create(4, zones="a,b")
    site.settled(group, 4)
    assert site.by_zone() == {"a": 4}
    site.world.beat()
    evened_out(site, group, a=2, b=2)
    # It reports all the time: that is no news.
    before = site.begun("group-keep")
    site.world.beat()
    assert site.begun("group-keep") == before


def test_members_return_once_a_host_is_in_their_zone(site: Zoned) -> None:
    group = site.create(4, zones="a,c")
    site.settled(group, 4)
    assert site.by_zone() == {"a": 4}
    site.zones["c"] = "pve2"
    doors = AggregateEndpoint(site.world.conductor.cloud, Notifier(site.world.conductor.cloud))
    (number,) = [one.id for one in site.world.rows(schema.aggregates) if one.name == "b"]
    doors.set_aggregate_metadata(internal(), number, {"availability_zone": "c"})
    evened_out(site, group, a=2, c=2)


def test_many_events_begin_one_look(site: Zoned) -> None:
    """And groups that are spread over nothing are not read."""
    group = site.create(4, zones="a,b")
    site.settled(group, 4)
    before = site.begun("group-keep")
    for _ in range(5):
        site.world.conductor.store.run(lambda c: group_news.note_zones(c, ["pve1", "pve2"]))
    assert [one.resource_id for one in site.open()] == [group]
    assert site.begun("group-keep") == before + 1
    site.world.conductor.store.run(lambda c: group_news.note_zones(c, []))
