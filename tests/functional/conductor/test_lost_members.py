"""Groups whose hosts are lost: what is replaced, what is waited for, and what is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.context import internal
from common.messages.facts import HaService, Inspection
from conductor.endpoints.hosts.services import ServiceEndpoint
from conductor.servers.record import lock
from db import schema
from tests.functional.conductor import test_follow as follow
from tests.functional.conductor.test_groups import Groups

AWAY = "Its node does not answer, and may still run it"


class _Nobody:
    """In place of the schedulers, which are not there."""

    def spread(self, _: Any) -> None:
        """Nobody is notified."""


class Site(Groups):
    """A group with one member on pve1 and others on pve2."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.services = ServiceEndpoint(self.world.conductor.cloud, _Nobody())  # type: ignore[arg-type]

    def spread(self, size: int = 3) -> tuple[str, list[str]]:
        """Return the group, and its servers."""
        self.world.scheduler.hosts = ["pve1"]
        group = self.create(1)
        self.settled(group, 1)
        self.world.scheduler.hosts = ["pve2"]
        self.resize(group, size)
        return group, self.settled(group, size)

    def lose(self, host: str = "pve1") -> None:
        """Its node is seen to be offline."""
        self.world.beat(lost=host)

    def mark(self, host: str = "pve1", *, down: bool = True) -> None:
        """As `openstack compute service set --down` does."""
        (row,) = (
            one
            for one in self.world.rows(schema.services)
            if (one.host, one.binary) == (host, "nova-compute")
        )
        self.services.update_service(internal(), row.uuid, forced_down=down)

    def hasten(self) -> None:
        """Every pause is over; what is being worked on is left alone."""
        of = schema.operations
        due = of.update().where(of.c.not_before.is_not(None)).values(not_before=None)
        self.world.conductor.store.run(lambda c: c.execute(due))
        self.world.conductor.runner.wake()

    def reported(self, group: str, status: str = "WARNING") -> str:
        """What the group shows once nothing is open about it."""
        self.world._wait(
            lambda: (self.group(group).status, [o.action for o in self.open_about(group)]),
            lambda found: found == (status, []),
        )
        return str(self.group(group).status_reason)

    def open_about(self, group: str) -> list[Any]:
        return [one for one in self.open() if one.resource_id == group]

    def replaced(self, was: str) -> str:
        """The server that took the place of the first member's."""
        self.world._wait(
            lambda: [self.members()[0].server_uuid, self.members()[0].ready_at],
            lambda found: found[0] not in (None, was) and found[1] is not None,
        )
        return str(self.members()[0].server_uuid)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def test_a_node_that_may_come_back_is_waited_for(site: Site) -> None:
    group, uuids = site.spread()
    site.lose()
    assert site.reported(group).startswith(f"web-1 can't be reached. {AWAY}")
    assert [one.server_uuid for one in site.members()] == uuids
    assert site.members()[0].reason.startswith(AWAY)
    assert site.begun("create") == 3
    # The size can be changed all the same.
    number = site.resize(group, 4)
    assert site.ended(number)[0] == "failed"
    assert len(site.servers()) == 4
    site.world.beat()
    assert site.settled(group, 4)[:3] == uuids
    assert site.members()[0].reason == ""
    assert site.begun("delete") == 0


def test_members_of_a_lost_node_are_replaced_in_their_places(site: Site) -> None:
    group, (first, *others) = site.spread()
    site.lose()
    site.reported(group)
    site.mark()
    new = site.replaced(first)
    assert [one.member_index for one in site.members()] == [1, 2, 3]
    assert [one.server_uuid for one in site.members()] == [new, *others]
    assert site.world.row(new).host == "pve2"
    # What is left there is removed as soon as the node is back.
    left = site.world.row(first)
    assert (left.task_state, left.deleted_at) == ("deleting", None)
    assert site.reported(group, "ACTIVE") == "3 of 3 members work."
    site.mark(down=False)
    site.world.beat()
    site.hasten()
    assert site.settled(group, 3) == [new, *others]
    assert site.world.row(first).deleted_at is not None
    assert site.begun("create") == 4


def test_one_that_is_said_to_be_down_but_answers_is_waited_for(site: Site) -> None:
    group, (first, *_) = site.spread()
    site.mark()
    site.world._wait(
        lambda: site.members()[0].reason,
        lambda reason: reason.startswith("Its node is marked as down, but still answers"),
    )
    assert site.members()[0].server_uuid == first
    site.lose()
    site.replaced(first)
    assert site.group(group).desired == 3


def test_a_locked_server_is_not_replaced(site: Site) -> None:
    group, (first, *_) = site.spread()
    cloud = site.world.conductor.cloud
    lock.lock(cloud, site.world.ctxt, first, None)
    site.lose()
    site.mark()
    site.world._wait(
        lambda: site.members()[0].reason, lambda reason: reason.endswith("is locked or held.")
    )
    site.reported(group)
    assert site.members()[0].server_uuid == first
    lock.unlock(cloud, site.world.ctxt, first, override=False)
    site.replaced(first)


def test_all_at_once_are_reported(site: Site) -> None:
    site.world.scheduler.hosts = ["pve1"]
    group = site.create(2)
    uuids = site.settled(group, 2)
    site.world.scheduler.hosts = ["pve2"]
    site.lose()
    site.mark()
    assert site.reported(group, "ERROR").startswith("All of its 2 members are not well at once")
    assert [one.server_uuid for one in site.members()] == uuids
    # Somebody who knows better repairs them.
    site.rpc.tend_group(site.world.ctxt, group, "group-recover")
    site.replaced(uuids[0])


def test_what_high_availability_recovers_is_not_replaced(site: Site) -> None:
    group, (first, *_) = site.spread()
    vmid = int(site.world.row(first).vmid)
    recovered = HaService(vmid, "pve1", "fence", "started", False)
    site.world.compute.services[vmid] = [recovered]
    site.lose()
    site.mark()
    site.world.until(first, "active", "rebuilding")
    found = {"ours": True, "marked_by": first, "power_state": 1}
    site.world.compute.vms[vmid] = Inspection(vmid, True, "pve2", **found)  # type: ignore[arg-type]
    site.world.compute.services[vmid] = [HaService(vmid, "pve2", "started", "started", True)]
    site.hasten()
    site.world.until(first, "active")
    assert site.reported(group, "ACTIVE") == "3 of 3 members work."
    assert site.members()[0].server_uuid == first
    assert (site.begun("create"), site.begun("delete"), site.begun("evacuate")) == (3, 0, 1)


def test_whether_it_is_recovered_is_not_known(site: Site) -> None:
    _, (first, *_) = site.spread()
    site.world.compute.deaf = True
    site.lose()
    site.mark()
    site.world._wait(site.open, lambda found: [one.action for one in found])
    assert site.members()[0].server_uuid == first
    site.world.compute.deaf = False

    def hastened() -> object:
        # Repeated, as an operation that is under way is postponed once more.
        site.hasten()
        return site.members()[0].server_uuid

    site.world._wait(hastened, lambda found: found not in (None, first))
    site.replaced(first)


def test_a_member_whose_vm_somebody_destroys_is_replaced_in_its_place(site: Site) -> None:
    """It is in no node of its cluster any more, which its agents see."""
    group, (first, *others) = site.spread()
    vmid = int(site.world.row(first).vmid)
    for _ in range(2):
        follow.report(site.world, low=vmid, high=vmid)
    new = site.replaced(first)
    assert site.settled(group, 3) == [new, *others]
    (fault,) = [one for one in site.world.rows(schema.faults) if one.server_uuid == first]
    assert fault.category == "vanished"
    assert site.world.row(first).deleted_at is not None
    assert [one.member_index for one in site.members()] == [1, 2, 3]
    assert (site.begun("create"), site.begun("delete")) == (4, 1)
    assert site.group(group).failures == 0
