"""Host aggregates: one zone a host in any race, and placement is updated in the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from common import ids
from common.context import RequestContext
from common.errors import Conflict, Invalid, MicronovaError, NotFound, Unavailable
from common.messages.commands import CacheImage
from common.messages.reports import Category, Failure
from common.resources.aggregates import AllAggregates
from conductor.endpoints.hosts.aggregates import AggregateEndpoint, Notifier
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.servers import CreateServers
from conductor.store.hosts import aggregates, registry
from conductor.store.outbox import placement_outbox
from conductor.store.transactions import Store
from db import engine, schema
from db.reads.hosts import aggregates as reads
from placement.messages import Memberships
from tests.functional.conductor.harness import IMAGE, World
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401

_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


class Placement:
    """The aggregates of providers."""

    def __init__(self) -> None:
        self.there: dict[str, list[str]] = {}
        self.known = {"uuid-pve1", "uuid-pve2"}
        self.down = False
        self.traits: set[tuple[str, str]] = set()
        self.used: set[str] = set()
        self.looks = self.writes = 0
        self.during_request: Callable[[], None] = lambda: None
        """Done while a request is on its way."""

    def memberships(self, uuids: Sequence[str]) -> dict[str, Memberships]:
        if self.down:
            raise Unavailable("Placement can't be reached.")
        assert uuids, "an empty outbox is no reason to ask"
        self.looks += 1
        return {
            uuid: Memberships(
                frozenset(trait for one, trait in self.traits if one == uuid),
                frozenset(self.there.get(uuid, ())),
            )
            for uuid in uuids
            if uuid in self.known
        }

    def set_aggregates(self, uuid: str, uuids: list[str]) -> None:
        self.writes += 1
        if self.down:
            raise Unavailable("Placement can't be reached.")
        if uuid not in self.known:
            raise NotFound("No such provider.")
        during_request, self.during_request = self.during_request, lambda: None
        during_request()
        self.there[uuid] = list(uuids)

    def add_trait(self, uuid: str, trait: str) -> None:
        if uuid not in self.known:
            raise NotFound("No such provider.")
        self.traits.add((uuid, trait))

    def remove_trait(self, uuid: str, trait: str) -> None:
        self.traits.discard((uuid, trait))

    def delete_provider(self, uuid: str) -> None:
        if self.down:
            raise Unavailable("Placement can't be reached.")
        if uuid in self.used:
            raise Conflict("It has allocations.")
        during_request, self.during_request = self.during_request, lambda: None
        during_request()
        self.known.discard(uuid)

    def all_allocations(self) -> dict[str, dict[str, dict[str, int]]]:
        return {}


class Schedulers:
    """What schedulers received last."""

    received: AllAggregates | None = None

    def update_aggregates(self, ctxt: RequestContext, settings: AllAggregates) -> None:
        self.received = settings


class Site:
    """A world with the doors of aggregates; placement is updated by hand."""

    def __init__(self, world: World) -> None:
        self.world, self.placement, self.schedulers = world, Placement(), Schedulers()
        cloud = world.conductor.cloud
        object.__setattr__(cloud, "placement", self.placement)
        object.__setattr__(cloud, "scheduler", self.schedulers)
        self.notifier = Notifier(cloud)
        self.doors = AggregateEndpoint(cloud, self.notifier)

    @property
    def store(self) -> Store:
        return self.world.conductor.store

    def create(self, name: str, zone: str | None = None) -> int:
        return self.doors.create_aggregate(RequestContext(), name, zone)

    def add(self, number: int, host: str) -> None:
        self.doors.add_aggregate_host(RequestContext(), number, host)

    def remove(self, number: int, host: str) -> None:
        self.doors.remove_aggregate_host(RequestContext(), number, host)

    def uuid(self, number: int) -> str:
        with self.store.read() as connection:
            found = reads.find(connection, number)
        assert found is not None
        return found.uuid

    def unsent(self) -> int:
        return len(self.world.rows(schema.aggregate_mirrors))

    def zone(self, host: str) -> str:
        with self.store.read() as connection:
            return registry.host(connection, host)[0].availability_zone


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    world = World(tmp_path)
    yield Site(world)
    world.close()


def test_schedulers_are_notified_of_each_change(site: Site) -> None:
    number = site.create("a", "az2")
    site.add(number, "pve2")
    first = site.schedulers.received
    assert first is not None
    assert [(one.name, one.hosts) for one in first.aggregates] == [("a", ("pve2",))]
    site.doors.set_aggregate_metadata(RequestContext(), number, {"ssd": "true"})
    second = site.schedulers.received
    assert second is not None
    assert second.version > first.version
    assert second.aggregates[0].metadata == {"availability_zone": "az2", "ssd": "true"}
    site.remove(number, "pve2")
    site.doors.update_aggregate(RequestContext(), number, name="b", metadata={})
    site.doors.delete_aggregate(RequestContext(), number)
    site.schedulers.received = None
    site.notifier.publish(RequestContext())
    assert site.schedulers.received is not None
    assert site.schedulers.received.aggregates == ()


def test_agents_are_informed_how_much_their_hosts_may_promise(site: Site) -> None:
    agents = site.world.compute
    one, two = site.create("a"), site.create("b")
    site.add(one, "pve1")
    site.add(two, "pve1")
    site.add(two, "pve2")
    assert agents.ratios is not None
    assert agents.ratios.hosts == {}
    ratio = "cpu_allocation_ratio"
    site.doors.set_aggregate_metadata(RequestContext(), one, {ratio: "2.0"})
    site.doors.set_aggregate_metadata(RequestContext(), two, {ratio: "8", "ssd": "true"})
    sent = agents.ratios
    assert sent.hosts == {"pve1": {ratio: 2.0}, "pve2": {ratio: 8.0}}
    site.remove(one, "pve1")
    assert agents.ratios.hosts["pve1"] == {ratio: 8.0}
    assert agents.ratios.version > sent.version


def test_placement_is_informed_in_the_end(site: Site) -> None:
    one, two = site.create("a"), site.create("b")
    site.placement.down = True
    site.add(one, "pve1")
    site.add(two, "pve1")
    assert not site.notifier.update_placement()
    assert (site.placement.there, site.unsent()) == ({}, 1)
    site.placement.down = False
    assert site.notifier.update_placement()
    assert site.placement.there == {"uuid-pve1": sorted([site.uuid(one), site.uuid(two)])}
    assert site.unsent() == 0
    site.remove(one, "pve1")
    site.notifier.update_placement()
    assert site.placement.there == {"uuid-pve1": [site.uuid(two)]}


def test_hosts_that_placement_has_as_they_are_to_be_take_one_request(site: Site) -> None:
    number = site.create("a")
    site.add(number, "pve1")
    assert site.notifier.update_placement()

    def reported(connection: sa.Connection) -> None:
        version = placement_outbox.begin(connection)
        placement_outbox.add(connection, ["pve1", "pve2"], version)

    site.store.run(reported)
    site.store.run(reported)
    site.placement.looks = site.placement.writes = 0
    assert site.notifier.update_placement()
    assert (site.placement.looks, site.placement.writes, site.unsent()) == (1, 0, 0)
    site.remove(number, "pve1")
    assert site.notifier.update_placement()
    assert (site.placement.looks, site.placement.writes, site.unsent()) == (2, 1, 0)
    assert site.notifier.update_placement()
    assert site.placement.looks == 2


def test_a_change_while_placement_is_informed_is_reported_too(site: Site) -> None:
    one, two = site.create("a"), site.create("b")
    site.add(one, "pve1")
    site.placement.during_request = lambda: site.add(two, "pve1")
    site.notifier.update_placement()
    assert (site.placement.there["uuid-pve1"], site.unsent()) == ([site.uuid(one)], 1)
    site.notifier.update_placement()
    assert len(site.placement.there["uuid-pve1"]) == 2
    assert site.unsent() == 0


def test_an_older_update_that_comes_last_is_corrected(site: Site) -> None:
    """Two conductors send those of one host: the slow one has the old aggregates."""
    one, two = site.create("a"), site.create("b")
    site.add(one, "pve1")

    def overtake() -> None:
        site.add(two, "pve1")
        assert Notifier(site.world.conductor.cloud).update_placement()

    site.placement.during_request = overtake
    site.notifier.update_placement()
    assert site.placement.there["uuid-pve1"] == [site.uuid(one)]
    assert site.unsent() == 1
    assert site.notifier.update_placement()
    assert len(site.placement.there["uuid-pve1"]) == 2


def test_a_provider_that_is_not_there_yet_is_waited_for(site: Site) -> None:
    number = site.create("a")
    site.placement.known.clear()
    site.add(number, "pve1")
    assert not site.notifier.update_placement()
    site.placement.known.add("uuid-pve1")
    assert site.notifier.update_placement()
    site.placement.known.clear()
    site.remove(number, "pve1")
    # There is nothing to update of a provider that has gone.
    assert site.notifier.update_placement()
    assert site.unsent() == 0


def test_the_thread_updates_placement_by_itself(site: Site) -> None:
    site.notifier.start()
    try:
        site.add(site.create("a"), "pve1")
        tick = threading.Event()
        for _ in range(1000):
            if site.unsent() == 0:
                break
            tick.wait(0.01)
        assert "uuid-pve1" in site.placement.there
    finally:
        site.notifier.stop()


def test_what_a_host_says_of_itself_does_not_change_an_aggregate_s_zone(site: Site) -> None:
    number = site.create("a", "az2")
    site.add(number, "pve2")
    site.world.beat()
    assert (site.zone("pve1"), site.zone("pve2")) == ("nova", "az2")
    site.remove(number, "pve2")
    assert site.zone("pve2") == "nova"


def test_a_service_that_goes_leaves_its_aggregates(site: Site) -> None:
    number = site.create("a", "az2")
    site.add(number, "pve2")
    site.notifier.update_placement()

    def forget(connection: sa.Connection) -> None:
        uuid = connection.execute(
            sa.select(schema.services.c.uuid).where(schema.services.c.host == "pve2")
        ).scalar_one()
        aggregates.delete_service(connection, uuid)
        registry.delete_service(connection, uuid)

    site.store.run(forget)
    assert site.world.rows(schema.aggregate_hosts) == []
    site.notifier.update_placement()
    assert site.placement.known == {"uuid-pve1"}


def test_images_are_made_ready_where_they_are_not(site: Site) -> None:
    number = site.create("a")
    for host in ("pve1", "pve2"):
        site.add(number, host)
    site.doors.cache_images(RequestContext(), number, [IMAGE])
    site.world.conductor.runner.start()
    site.world.compute.wait_for(2)
    sent = [command for _, command in site.world.compute.sent]
    first, second = sorted(sent, key=lambda command: command.placed.host)
    assert isinstance(first, CacheImage)
    assert isinstance(second, CacheImage)
    assert [command.placed.host for command in (first, second)] == ["pve1", "pve2"]
    assert first.template is not None
    assert first.image is not None
    assert (first.placed.vmid, first.image.id) == (first.template.vmid, IMAGE)
    # The outcomes are reported.
    site.world.answer(first, ok=True)
    site.world.answer(second, ok=False, failure=Failure(Category.LOCK, "locked"))
    for_image = {row.resource_id: row.resource_type for row in site.world.rows(schema.operations)}
    assert for_image == {IMAGE: "image"}
    site.world.until_operation("done", "failed")
    site.world.conductor.runner.stop()
    assert len(site.world.rows(schema.templates)) == 2
    site.doors.cache_images(RequestContext(), number, [IMAGE])
    assert len(site.world.rows(schema.templates)) == 2


def test_images_that_can_t_be_made_ready_are_reported(site: Site) -> None:
    number = site.create("a")
    site.add(number, "pve1")
    site.doors.cache_images(RequestContext(), number, [])
    unknown = ids.new_uuid()
    reason = f"Images can't be cached: image {unknown} is on no storage of host pve1."
    with pytest.raises(Invalid) as refused:
        site.doors.cache_images(RequestContext(), number, [IMAGE, unknown])
    assert refused.value.message == reason
    with pytest.raises(NotFound):
        site.doors.cache_images(RequestContext(), 99, [IMAGE])

    def without(what: str, value: object) -> None:
        def work(connection: sa.Connection) -> None:
            facts = connection.execute(
                sa.select(schema.hosts.c.facts).where(schema.hosts.c.host == "pve1")
            ).scalar_one()
            connection.execute(schema.hosts.update().values(facts={**facts, what: value}))

        site.store.run(work)

    without("capabilities", {})
    with pytest.raises(Invalid, match="host pve1 can't clone"):
        site.doors.cache_images(RequestContext(), number, [IMAGE])
    without("cached_images", [IMAGE])
    site.doors.cache_images(RequestContext(), number, [IMAGE])
    without("cached_images", [])
    without("capabilities", {"linked_clone": True})
    site.world.silence()
    site.doors.cache_images(RequestContext(), number, [IMAGE])
    assert site.world.compute.sent == []
    assert site.world.rows(schema.templates) == []


def racing(count: int, work: Callable[[int], Any]) -> list[MicronovaError]:
    """Do it in so many threads at once; returns the refusals."""
    refused: list[MicronovaError] = []
    barrier = threading.Barrier(count)

    def run(number: int) -> None:
        barrier.wait(60)
        try:
            work(number)
        except MicronovaError as error:
            refused.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return refused


@pytest.fixture
def postgres_site(
    postgres_url: str,  # noqa: F811
    tmp_path: Path,
) -> Iterator[Site]:
    world = World(tmp_path, url=postgres_url)
    yield Site(world)
    world.close()
    world.conductor.store._writer.dispose()
    world.conductor.store._reader.dispose()


def test_many_zones_race_for_one_host(postgres_site: Site) -> None:
    site = postgres_site
    numbers = [site.create(f"a{n}", f"az{n}") for n in range(8)]
    stores = [Store(engine.writer(site.world.url), site.store._reader) for _ in numbers]
    refused = racing(
        8, lambda n: stores[n].run(lambda c: aggregates.add_host(c, numbers[n], "pve1"))
    )
    for store in stores:
        store._writer.dispose()
    assert len(refused) == 7
    assert all(isinstance(error, Conflict) for error in refused)
    [row] = site.world.rows(schema.aggregate_hosts)
    assert site.zone("pve1") == f"az{numbers.index(row.aggregate_id)}"


def test_a_server_and_a_zone_race_for_one_host(postgres_site: Site) -> None:
    """Either the server is there first, and the zone remains; or it follows the new zone."""
    site = postgres_site
    number = site.create("a", "az2")
    site.add(number, "pve1")
    request = CreateServers("web", FlavorSnapshot("1", "m1.tiny", 1, 512, 1), IMAGE)
    (uuid,) = site.world.conductor.creates.create(site.world.ctxt, request)[0].uuids
    locked = threading.Event()

    def place(connection: sa.Connection) -> str:
        facts, _ = registry.host(connection, "pve1", lock=True)
        locked.set()
        tick = threading.Event()
        with site.store.read() as looking:
            while not looking.exec_driver_sql(_WAITING).scalar_one():
                looking.rollback()
                tick.wait(0.01)
        columns = schema.servers.c
        connection.execute(schema.servers.update().where(columns.uuid == uuid).values(host="pve1"))
        return facts.availability_zone

    zones: list[str] = []
    placing = threading.Thread(target=lambda: zones.append(site.store.run(place)))
    placing.start()
    assert locked.wait(60)
    with pytest.raises(Invalid, match="contain instances in this zone"):
        site.doors.set_aggregate_metadata(RequestContext(), number, {"availability_zone": "az3"})
    placing.join(60)
    assert zones == ["az2"]
    assert site.zone("pve1") == "az2"
