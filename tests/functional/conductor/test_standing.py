"""Hosts that administrators disable, force down and delete: who hears of it, and what is built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import clock
from common.context import RequestContext
from common.errors import HostNotFound, Unavailable
from common.messages.facts import Heartbeat
from common.resources.aggregates import AllAggregates
from conductor.endpoints.hosts.aggregates import Notifier
from conductor.endpoints.hosts.services import ServiceEndpoint
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.servers import CreateServers
from conductor.servers.create.create import Create
from conductor.store.outbox import placement_outbox
from db import schema
from tests.functional.conductor.harness import IMAGE, World
from tests.functional.conductor.test_aggregates import Placement, Schedulers

TRAIT = "COMPUTE_STATUS_DISABLED"


class Site:
    """A world with the doors of services; placement is updated by hand."""

    def __init__(self, world: World) -> None:
        self.world, self.placement, self.schedulers = world, Placement(), Schedulers()
        cloud = world.conductor.cloud
        object.__setattr__(cloud, "placement", self.placement)
        object.__setattr__(cloud, "scheduler", self.schedulers)
        self.notifier = Notifier(cloud)
        self.doors = ServiceEndpoint(cloud, self.notifier)
        world.compute.introduced.clear()

    def service(self, host: str) -> str:
        with self.world.conductor.store.read() as connection:
            found: str = connection.execute(
                sa.select(schema.services.c.uuid).where(schema.services.c.host == host)
            ).scalar_one()
        return found

    def set(self, host: str, **changes: Any) -> AllAggregates:
        """Returns what schedulers received."""
        values = {"disabled": None, "reason": None, "forced_down": None, **changes}
        self.doors.update_service(RequestContext(), self.service(host), **values)
        assert self.schedulers.received is not None
        return self.schedulers.received

    def delete(self, host: str) -> None:
        self.doors.delete_service(RequestContext(), self.service(host))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture
def site(world: World) -> Site:
    return Site(world)


def test_schedulers_hear_of_each_change(site: Site) -> None:
    first = site.set("pve1", disabled=True, reason="broken")
    assert (first.hosts, first.disabled, first.forced_down) == (("pve1", "pve2"), ("pve1",), ())
    second = site.set("pve2", forced_down=True)
    assert (second.disabled, second.forced_down) == (("pve1",), ("pve2",))
    assert second.version > first.version
    third = site.set("pve1", disabled=False)
    assert (third.disabled, third.forced_down) == ((), ("pve2",))
    with pytest.raises(HostNotFound):
        site.doors.update_service(
            RequestContext(), "nothing", disabled=True, reason=None, forced_down=None
        )


def test_placement_hears_of_it_in_the_end(site: Site) -> None:
    site.placement.down = True
    site.set("pve1", disabled=True)
    assert not site.notifier.update_placement()
    assert site.placement.traits == set()
    site.placement.down = False
    assert site.notifier.update_placement()
    assert site.placement.traits == {("uuid-pve1", TRAIT)}
    site.set("pve1", disabled=False)
    assert site.notifier.update_placement()
    assert site.placement.traits == set()


def test_a_disabled_host_s_provider_is_waited_for(site: Site) -> None:
    site.placement.known.clear()
    site.set("pve1", disabled=True)
    assert not site.notifier.update_placement()
    site.placement.known.add("uuid-pve1")
    assert site.notifier.update_placement()
    assert site.placement.traits == {("uuid-pve1", TRAIT)}


def test_the_provider_of_a_deleted_service_goes(site: Site) -> None:
    site.placement.used.add("uuid-pve2")
    site.delete("pve2")
    assert site.schedulers.received is not None
    assert site.schedulers.received.hosts == ("pve1",)
    # What somebody still has of it is released first.
    assert not site.notifier.update_placement()
    assert "uuid-pve2" in site.placement.known
    site.placement.used.clear()
    assert site.notifier.update_placement()
    assert site.placement.known == {"uuid-pve1"}
    assert site.world.rows(schema.aggregate_mirrors) == []


def test_a_deleted_service_whose_agent_still_beats_comes_back_whole(site: Site) -> None:
    site.delete("pve2")
    beat = Heartbeat("w1", clock.utcnow(), ("pve1", "pve2"))
    site.world.conductor.reports.heartbeat(beat)
    site.world.conductor.reports.heartbeat(beat)
    assert site.world.compute.introduced == ["w1"]
    site.world.beat()
    assert {row.host for row in site.world.rows(schema.hosts)} == {"pve1", "pve2"}
    assert site.notifier.update_placement()
    assert site.placement.known == {"uuid-pve1", "uuid-pve2"}


def test_a_host_that_comes_back_with_a_whole_report_is_asked_all_the_same(
    site: Site,
) -> None:
    """Somebody else may have asked for that report; it says nothing of its provider."""
    site.delete("pve2")
    assert site.notifier.update_placement()
    site.world.beat()
    assert site.world.compute.introduced == ["w1"]
    site.world.beat()
    assert site.world.compute.introduced == ["w1"]


def test_a_worker_that_publishes_new_hosts_anyway_is_not_asked(site: Site) -> None:
    site.delete("pve2")
    assert site.notifier.update_placement()
    site.world.beat(published=True)
    assert site.world.compute.introduced == []


def test_one_that_published_right_before_its_provider_went_is_asked(site: Site) -> None:
    """It had just restarted: nobody knew whom to ask when the provider went."""
    site.delete("pve2")
    assert site.notifier.update_placement()
    site.world.beat(published=True)
    assert site.notifier.update_placement()
    assert site.world.compute.introduced == ["w1"]
    site.placement.known.add("uuid-pve2")
    assert site.notifier.update_placement()
    assert site.world.compute.introduced == ["w1"]


def test_whose_question_was_lost_is_asked_again(site: Site) -> None:
    site.delete("pve2")
    site.world.conductor.reports.heartbeat(Heartbeat("w1", clock.utcnow(), ("pve1", "pve2")))
    site.world.compute.introduced.clear()
    site.world.conductor.reports.ask_again()
    assert site.world.compute.introduced == ["w1"]
    site.world.beat()
    site.world.compute.introduced.clear()
    site.world.conductor.reports.ask_again()
    assert site.world.compute.introduced == []


def test_a_host_that_comes_back_while_its_provider_goes_makes_it_again(site: Site) -> None:
    site.delete("pve2")
    site.placement.during_request = site.world.beat
    assert site.notifier.update_placement()
    # When it came, and once more when the provider had gone.
    assert site.world.compute.introduced == ["w1", "w1"]


def test_a_host_that_is_only_named_while_its_provider_goes_makes_it_again(site: Site) -> None:
    """Its worker was asked, and looked at the provider just before that went."""
    site.delete("pve2")
    site.world.conductor.reports.heartbeat(Heartbeat("w1", clock.utcnow(), ("pve1", "pve2")))
    assert site.notifier.update_placement()
    site.world.beat(published=True)
    assert site.world.compute.introduced == ["w1", "w1"]


def test_a_host_whose_provider_was_deleted_without_an_answer_makes_it_again(site: Site) -> None:
    def lost() -> None:
        site.world.beat()
        site.placement.known.discard("uuid-pve2")
        raise Unavailable("The answer is lost.")

    site.delete("pve2")
    site.placement.during_request = lost
    assert not site.notifier.update_placement()
    assert site.world.compute.introduced == ["w1"]
    assert site.notifier.update_placement()
    assert site.world.compute.introduced == ["w1", "w1"]


# --- schedulers that don't know it yet


def unusable(world: World, how: str) -> None:
    def work(connection: sa.Connection) -> None:
        mine = schema.services.c.host == "pve1"
        if how == "deleted":
            connection.execute(schema.hosts.delete().where(schema.hosts.c.host == "pve1"))
            connection.execute(schema.services.delete().where(mine))
        else:
            connection.execute(schema.services.update().where(mine).values({how: True}))
        placement_outbox.begin(connection)

    world.conductor.store.run(work)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("deleted", "it is no compute host any more"),
        ("disabled", "disabled by an administrator"),
        ("forced_down", "forced down by an administrator"),
    ],
)
def test_the_next_host_is_taken(world: World, how: str, why: str) -> None:
    unusable(world, how)
    (uuid,) = world.create()
    command = world.compute.wait_for(1)
    assert command.placed.host == "pve2"
    assert world.row(uuid).host == "pve2"
    assert world.placement.claims == {uuid: "pve2"}
    assert [one.ignore_hosts for one in world.scheduler.asked] == [(), ("pve1",)]
    [decision] = world.rows(schema.decisions)
    assert decision.body["claims"] == [{"host": "pve1", "result": why}]


def test_where_there_is_no_other_the_build_fails_and_keeps_nothing(world: World) -> None:
    unusable(world, "deleted")
    world.scheduler.hosts = ["pve1"]
    (uuid,) = world.create()
    world.until(uuid, "error")
    assert world.placement.claims == {}


def test_of_many_those_that_lost_their_host_find_another(world: World) -> None:
    unusable(world, "deleted")
    flavor = FlavorSnapshot("1", "m1.tiny", 1, 512, 1)
    request = CreateServers("web", flavor, IMAGE, networks=(), min_count=3, max_count=3)
    conductor = world.conductor
    conductor.runner.start()
    created, operations = conductor.creates.create(world.ctxt, request)
    conductor.runner.submit_many(operations, Create(conductor.cloud).begin_many)
    assert {world.compute.wait_for(n + 1).placed.host for n in range(3)} == {"pve2"}
    assert world.scheduler.together == [3]
    assert world.placement.claims == dict.fromkeys(created.uuids, "pve2")
