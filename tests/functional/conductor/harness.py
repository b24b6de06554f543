"""A conductor on a real SQLite database, with recorded neighbours that the test drives."""

from __future__ import annotations

import collections
import copy
import dataclasses
import itertools
import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from common import clock, config, ids, log, rpc
from common.context import RequestContext
from common.errors import GenerationConflict, Unavailable
from common.messages.commands import Command, StrictGroup
from common.messages.facts import (
    ClusterFacts,
    HaService,
    Heartbeat,
    HostFacts,
    ImageFacts,
    Inspection,
    OtherVm,
    StorageFacts,
    VmStates,
)
from common.messages.filters import Filter, FilterCheck, Filtered
from common.messages.inventory import ClusterInventory, SeenAffinity
from common.messages.questions import (
    CheckFilter,
    ConvergeAffinity,
    ConvergeFilter,
    FindHaService,
    Inspect,
    LookAtAll,
    LookAtOthers,
    Question,
    Reachable,
    ReadInventory,
    SteerMigration,
)
from common.messages.reports import Failure, Outcome, Report, Working
from common.messages.scheduling import Alternate, Decision, RequestSpec
from common.more_hosts import holds
from common.resources import quotas
from common.resources.aggregates import Ratios
from conductor import config as conductor_config
from conductor.audit.auditor import Auditor
from conductor.audit.differences import differences
from conductor.audit.gather import Gatherer
from conductor.audit.heal import Healer
from conductor.audit.restoring.restorer import Restorer
from conductor.cloud import Cloud
from conductor.endpoints.audits import AuditEndpoint
from conductor.endpoints.servers.manage import ManageEndpoint
from conductor.engine.periodic import Periodic
from conductor.engine.runner import Flow, Runner
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.servers import CreateServers, RebuildServer
from conductor.servers.accept import Accept
from conductor.servers.begin_delete import DeleteAcceptance
from conductor.servers.create.begin_create import CreateAcceptance
from conductor.servers.disks.begin_rebuild import RebuildAcceptance
from conductor.servers.disks.begin_rescue import RescueAcceptance
from conductor.servers.move.begin_resize import ResizeAcceptance
from conductor.servers.table import endings
from conductor.servers.table import flows as all_flows
from conductor.store.records import Operation
from conductor.store.transactions import Store
from conductor.sync.filters import NAME, SECONDS, Filters
from conductor.sync.reports import Reports
from conductor.sync.vm_states import VmSync
from db import engine, schema
from placement.client import PlacementClient
from placement.messages import Allocations, Candidates, Replacement, Usage
from scheduler.filters.resources import needs
from tests.fixtures import databases
from tests.fixtures.messages import snake
from tests.functional.db.conftest import mariadb_database

IMAGE = ids.named("image", "debian-12")

#: differences for which no cluster has to be looked at
BOOKS = frozenset(
    {"allocation_without_server", "allocation_unknown", "allocation_differs"}
    | {"server_without_allocation", "port_without_server", "address_without_port"}
    | {"group_place_without_server", "vmid_not_reserved", "vmid_without_owner"}
    | {"server_abandoned"}
)


class Scheduler:
    """Answers with hosts in order; remembers what it was asked."""

    def __init__(self, placement: Placement, hosts: list[str]) -> None:
        self.hosts = hosts
        self.hosts_for: Callable[[RequestSpec], list[str]] = lambda _: self.hosts
        self.asked: list[RequestSpec] = []
        self.together: list[int] = []
        self.claims: tuple[dict[str, Any], ...] = ()
        self.failures: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.placement = placement
        self.down = False

    def select(
        self, ctxt: RequestContext, request: RequestSpec, alternates: tuple[Alternate, ...] = ()
    ) -> Decision:
        if self.down:
            raise Unavailable("The service behind select did not answer.")
        self.asked.append(request)
        left = [host for host in self.hosts_for(request) if host not in request.ignore_hosts]
        if not left:
            return Decision(
                request.server_uuid, None, reason="No valid host was found: none left."
            )
        self.placement.claims[request.server_uuid] = left[0]
        self.placement.amounts[request.server_uuid] = dict(needs(request).resources)
        self.gate.wait(60)
        others = tuple(Alternate(host, f"uuid-{host}", 1.0) for host in left[1:])
        return Decision(
            request.server_uuid,
            left[0],
            f"uuid-{left[0]}",
            others,
            len(left),
            claims=self.claims,
        )

    def select_many(
        self, ctxt: RequestContext, requests: tuple[RequestSpec, ...]
    ) -> list[Decision]:
        self.together.append(len(requests))
        return [self.select(ctxt, request) for request in requests]

    def preview(
        self,
        ctxt: RequestContext,
        requests: tuple[RequestSpec, ...],
        without: tuple[str, ...] = (),
    ) -> list[Decision]:
        """Says yes to a host that is asked for, unless it is out of the list."""
        (one,) = requests
        self.asked.append(one)
        if one.force_host not in self.hosts:
            return [Decision(one.server_uuid, None, reason="No valid host was found: none left.")]
        return [Decision(one.server_uuid, one.force_host, f"uuid-{one.force_host}")]

    def note_failure(self, ctxt: RequestContext, host: str) -> None:
        self.failures.append(host)


class Compute:
    """Records the commands; the test answers them."""

    def __init__(self) -> None:
        self.ratios: Ratios | None = None
        """What agents were sent last."""
        self.sent: list[tuple[str, Command]] = []
        self.looks: list[Command] = []
        """Those of them that may only look."""
        self.vms: dict[int, Inspection] = {}
        self.group_rules: list[tuple[str, StrictGroup, tuple[int, ...]]] = []
        """The rules of server groups that clusters were sent."""
        self.filtered: list[tuple[str, Filter]] = []
        """What was to pass the interfaces of servers, each time it was written."""
        self.firewalls: dict[str, FilterCheck] = {}
        """How the firewalls of servers' VMs differ."""
        self.checked: list[tuple[str, Filter]] = []
        """Whose firewalls were looked at, and what they were compared with."""
        self.writing: Callable[[], None] | None = None
        """Called while it is written."""
        self.refuses = ""
        """Why they take nothing of it."""
        self.services: dict[int, list[HaService]] = {}
        """VMs under high availability, at each look; the last one is repeated."""
        self.others: dict[int, OtherVm] = {}
        """VMs that the record doesn't know, with their interfaces."""
        self.shown: dict[str, VmStates] = {}
        """What clusters show when they are looked at."""
        self.before_look: Callable[[Reachable], object] = lambda _: None
        self.before_read: Callable[[], object] = lambda: None
        """Called before they show it."""
        self.unreadable: set[str] = set()
        """Clusters whose other VMs can't be read."""
        self.asked_for: list[list[int]] = []
        """Which of them were read, each time."""
        self.announced = 0
        """How often all workers were asked to report everything."""
        self.inspected: list[int] = []
        self.deaf = False
        self.introduced: list[str] = []
        """Workers that were asked to report everything."""
        self.seen: dict[str, ClusterInventory] = {}
        """What a census shows of each cluster."""
        self.read: list[frozenset[int]] = []
        """Whose descriptions each census was asked to read."""
        self.answering: Callable[[Command], None] | None = None
        """Called with every command, right when it is sent."""
        self._news = threading.Condition()

    def introduce(self, ctxt: RequestContext, worker: str) -> None:
        self.introduced.append(worker)

    def announce(self, ctxt: RequestContext) -> None:
        self.announced += 1

    def ask(self, ctxt: RequestContext, at: Reachable, question: Question) -> Any:
        """What the test says, or what was written."""
        name = snake(type(question).__name__)
        if self.deaf:
            raise Unavailable(f"Worker {at.worker} does not answer {name}.")
        if isinstance(question, LookAtAll):
            self.before_look(at)
        return getattr(self, f"_{name}")(at.cluster, question)

    def _look_at_all(self, cluster: str, _: LookAtAll) -> VmStates:
        """As an agent of a release that can't be asked, unless the test says what it shows."""
        if cluster not in self.shown:
            raise Unavailable("LookAtAll can't be read.")
        return self.shown[cluster]

    def _look_at_others(self, cluster: str, one: LookAtOthers) -> list[OtherVm]:
        if cluster in self.unreadable:
            raise Unavailable(f"Cluster {cluster} can't be looked at.")
        self.before_read()
        self.asked_for.append([other.vmid for other in one.wanted])
        return [self.others.get(other.vmid, other) for other in one.wanted]

    def update_ratios(self, ctxt: RequestContext, ratios: Ratios) -> None:
        self.ratios = ratios

    def execute(self, ctxt: RequestContext, worker: str, command: Command) -> None:
        with self._news:
            self.sent.append((worker, command))
            if ctxt.only_look:
                self.looks.append(command)
            self._news.notify_all()
        if self.answering is not None:
            self.answering(command)

    def _converge_filter(self, _: str, one: ConvergeFilter) -> Filtered:
        if self.writing is not None:
            self.writing()
        uuid = one.target.server_uuid
        self.filtered.append((uuid, one.wanted))
        seen = self.firewalls.get(uuid, FilterCheck())
        self.firewalls[uuid] = FilterCheck((), seen.foreign)
        return Filtered(1)

    def _check_filter(self, _: str, one: CheckFilter) -> FilterCheck:
        self.checked.append((one.target.server_uuid, one.wanted))
        return self.firewalls.get(one.target.server_uuid, FilterCheck())

    def _converge_affinity(self, cluster: str, one: ConvergeAffinity) -> None:
        """Shows it from then on."""
        if self.refuses:
            raise Unavailable(f"Cluster {cluster} takes no rule: {self.refuses}")
        vmids = tuple(vmid for vmid, _ in one.members)
        self.group_rules.append((cluster, one.group, vmids))
        seen = SeenAffinity(one.cloud, one.group.uuid, vmids, vmids, rule=len(vmids) > 1)
        self.seen[cluster] = dataclasses.replace(
            self.seen[cluster], affinity=(seen,) if vmids else ()
        )

    def remove_group_rules(
        self, ctxt: RequestContext, worker: str, cluster: str, cloud: str, group: str
    ) -> None:
        """As an agent of a group without members."""
        nobody = StrictGroup(group, apart=False)
        self._converge_affinity(cluster, ConvergeAffinity(cloud, nobody))

    def _steer_migration(self, _: str, one: SteerMigration) -> str | None:
        return self.refuses or None

    def _inspect(self, _: str, one: Inspect) -> Inspection:
        """What the test says of the VM; nothing: it isn't there."""
        self.inspected.append(one.vmid)
        return self.vms.get(one.vmid, Inspection(one.vmid))

    def _find_ha_service(self, _: str, one: FindHaService) -> HaService | None:
        """What the test says that the HA manager does with the VM."""
        looks = self.services.get(one.vmid, [])
        return looks.pop(0) if len(looks) > 1 else next(iter(looks), None)

    def _read_inventory(self, cluster: str, one: ReadInventory) -> ClusterInventory:
        self.read.append(frozenset(one.read))
        return self.seen.get(cluster, ClusterInventory(cluster))

    def wait_for(self, count: int) -> Command:
        """The count-th command sent, waiting for it."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.sent) >= count, 10), self.sent
            return self.sent[count - 1][1]


class Placement(PlacementClient):
    """Claims by consumer."""

    def __init__(self) -> None:
        self.claims: dict[str, str] = {}
        self.amounts: dict[str, Mapping[str, int]] = {}
        """What a consumer claimed, where it is not the size of ``World.create``."""
        self.written: collections.Counter[str] = collections.Counter()
        """How often a consumer's claim was replaced."""
        self.read: list[str] = []
        """Consumers whose allocations were asked for."""
        self.traits: set[tuple[str, str]] = set()
        self.down = False
        self.full: set[str] = set()
        """Providers without room."""
        self.free: dict[str, Mapping[str, int]] = {}
        """Provider → what it has free, as far as that is known before the scheduler is asked."""
        self.asked: list[Mapping[str, int]] = []
        """What candidates had to have free."""

    def candidates(self, resources: Mapping[str, int], *_: Any, **__: Any) -> Candidates:
        if self.down:
            raise Unavailable("Placement can't be reached.")
        self.asked.append(dict(resources))
        there = {uuid: free for uuid, free in self.free.items() if holds(free, resources)}
        usages = {
            name: Usage([free.get(name, 0) for free in there.values()], [0] * len(there))
            for name in set().union(*there.values())
        }
        return Candidates(list(there), usages, [frozenset()] * len(there))

    def allocations_of(self, consumer_uuid: str) -> Allocations:
        if self.down:
            raise Unavailable("Placement can't be reached.")
        self.read.append(consumer_uuid)
        if consumer_uuid not in self.claims:
            return Allocations()
        held = {self.claims[consumer_uuid]: self._held(consumer_uuid)}
        return Allocations(held, "p", "u", self._generation(consumer_uuid))

    def _generation(self, consumer: str) -> int | None:
        return 1 + self.written[consumer] if consumer in self.claims else None

    def replace(
        self,
        consumer_uuid: str,
        by_provider: Mapping[str, Any],
        project_id: str,
        user_id: str,
        generation: int | None,
    ) -> bool:
        if not by_provider:
            self.claims.pop(consumer_uuid, None)
            self.written.pop(consumer_uuid, None)
            return True
        ((provider, amounts),) = by_provider.items()
        if provider in self.full:
            return False
        self.written[consumer_uuid] += consumer_uuid in self.claims
        self.claims[consumer_uuid], self.amounts[consumer_uuid] = provider, amounts
        return True

    def replace_together(self, claims: Sequence[Replacement]) -> bool:
        if self.down:
            raise Unavailable("Placement can't be reached.")
        wanted = {provider for one in claims for provider in one.by_provider}
        if any(one.generation != self._generation(one.consumer_uuid) for one in claims):
            raise GenerationConflict("consumer generation conflict")
        if wanted & self.full:
            return False
        for one in claims:
            self.replace(one.consumer_uuid, one.by_provider, "p", "u", one.generation)
        return True

    def claim(
        self,
        consumer_uuid: str,
        provider_uuid: str,
        resources: Mapping[str, int],
        project_id: str,
        user_id: str,
    ) -> bool:
        if self.down:
            raise Unavailable("Placement can't be reached.")
        return self.replace(consumer_uuid, {provider_uuid: resources}, project_id, user_id, None)

    def all_allocations(self) -> None:
        """As OpenStack's placement: it can't list them."""

    def provider_allocations(self, uuid: str) -> dict[str, dict[str, int]]:
        if self.down:
            raise Unavailable("Placement can't be reached.")
        return {
            consumer: self._held(consumer)
            for consumer, where in self.claims.items()
            if where in (uuid, uuid.removeprefix("uuid-"))
        }

    def _held(self, consumer: str) -> dict[str, int]:
        """What it claimed, or the size of ``World.create``."""
        small = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
        return dict(self.amounts.get(consumer, small))

    def release(self, consumer_uuid: str) -> None:
        if self.down:
            raise Unavailable("Placement can't be reached.")
        self.claims.pop(consumer_uuid, None)
        self.written.pop(consumer_uuid, None)

    def release_all(self, consumer_uuids: Sequence[str]) -> None:
        for uuid in consumer_uuids:
            self.release(uuid)

    def add_trait(self, uuid: str, trait: str) -> bool:
        self.traits.add((uuid, trait))
        return True

    def remove_trait(self, uuid: str, trait: str) -> bool:
        self.traits.discard((uuid, trait))
        return True


class Died(BaseException):
    """The conductor is gone at this point: nothing of it runs any more."""


class Mortal:
    """Counts what a store commits, and dies, or is slow, at one of it."""

    def __init__(self, store: Store) -> None:
        self._run = store.run
        self.live()
        store.run = self  # type: ignore[method-assign,assignment]

    def live(self, dies_at: int = 0, *, before: bool = False) -> None:
        """Begin to count; 0: it does not die."""
        self.commits, self._dies_at, self._before = 0, dies_at, before
        self._slow_at, self._before_commit = 0, lambda: None

    def slow(self, at: int, before_commit: Callable[[], None]) -> None:
        """Begin to count, and have something done right before the commit of that number."""
        self.live()
        self._slow_at, self._before_commit = at, before_commit

    def __call__(self, work: Callable[[sa.Connection], Any]) -> Any:
        self.commits += 1
        if self.commits == self._slow_at:
            self._before_commit()
        here = 0 < self._dies_at <= self.commits
        if here and (self._before or self.commits > self._dies_at):
            raise Died
        try:
            return self._run(work)
        finally:
            if here:
                raise Died


def _plain(neighbour: object) -> dict[str, Any]:
    """What a neighbour remembers."""
    kinds = bool | str | list | dict | set
    return {name: value for name, value in vars(neighbour).items() if isinstance(value, kinds)}


class Conductor:
    """One conductor; several may share a database (``url``) and neighbours."""

    def __init__(
        self,
        url: str,
        scheduler: Scheduler,
        compute: Compute,
        placement: Placement,
        name: str,
        **options: Any,
    ) -> None:
        conf = config.load(
            [
                conductor_config.register,
                engine.register,
                quotas.register,
                rpc.register,
                log.register,
            ]
        )
        for key, value in {"scan_seconds": 0.1, "audit_settle_seconds": 0, **options}.items():
            conf.set_override(key, value, group="conductor")
        self.store = Store(engine.writer(url), engine.reader(url))
        flows: dict[str, Flow] = {}
        self.runner = Runner(conf, self.store, name, flows, self._require)
        self.cloud = Cloud(
            conf,
            name,
            self.store,
            scheduler,
            compute,
            placement,
            {**quotas.defaults(conf), "instances": 10, "cores": 20},
            self.runner.wake,
            lambda: math.inf,
            self._start,
        )
        self.store.wake = self.runner.wake
        flows |= all_flows(self.cloud)
        self.store.follow = self.cloud.guard.follow
        self.filters = Filters(self.cloud)
        self.runner.periodic.add(Periodic(NAME, SECONDS, self.filters.look, apart=True))
        self.accept = Accept(self.cloud)
        self.creates = CreateAcceptance(self.cloud)
        self.deletes = DeleteAcceptance(self.cloud, self.accept)
        self.resizes = ResizeAcceptance(self.cloud)
        self.rebuilds = RebuildAcceptance(self.cloud)
        self.rescues = RescueAcceptance(self.cloud)
        self.reports = Reports(self.cloud, self.runner, endings(self.cloud))
        self.followed = VmSync(self.cloud, self.runner)
        self.custody = ManageEndpoint(self.cloud, self.runner, self.followed)
        healer = Healer(self.cloud, self.runner)
        gatherer = Gatherer(self.cloud)
        restorer = Restorer(self.cloud, gatherer, self.runner)
        self.auditor = Auditor(self.cloud, gatherer, healer, restorer)
        self.audits = AuditEndpoint(self.cloud, self.auditor, healer)

    def _require(self, operation: Operation) -> None:
        self.cloud.guard.require(operation)

    def _start(self, operation: Operation) -> None:
        """Carry out what was begun here, unless this conductor was never started."""
        if self.runner.periodic.alive:
            self.runner.submit(operation)


def said(command: Command, *, ok: bool = True, **values: Any) -> Outcome:
    """The outcome of a command, with those of the values that its class has."""
    kind = command.outcome()
    names = {one.name for one in dataclasses.fields(kind)}
    return kind(ok, **{name: value for name, value in values.items() if name in names})


class World:
    """A database with two hosts and an image, one conductor, and a user."""

    def __init__(
        self,
        folder: Path,
        *,
        url: str | None = None,
        hosts: tuple[str, ...] = ("pve1", "pve2"),
        bridges: tuple[str, ...] = ("vmbr0", "vmbr1"),
        **options: Any,
    ) -> None:
        self.url = url or f"sqlite:///{folder}/cloud.sqlite"
        given = os.environ.get("MICRONOVA_TEST_MARIADB")
        if url is None and given:
            server, self.url = mariadb_database(given)
            server.dispose()
        self.hosts, self.bridges = hosts, bridges
        databases.create(self.url)
        self.placement = Placement()
        self.scheduler = Scheduler(self.placement, list(hosts))
        self.compute = Compute()
        self.options = options
        self.conductors: list[Conductor] = []
        self.clusters: dict[str, str] = {}
        """Host → its cluster; others are in sim1."""
        self.storages = [StorageFacts("nfs1", "nfs", True, True, 1000, 900, ("import", "iso"))]
        """What each host has besides the storage of its disks."""
        self.leaves: set[str] = set()
        """Kinds of differences in the books that the test makes, and leaves."""
        self.conductor = self.add_conductor("c1")
        self.ctxt = RequestContext(user_id="u", project_id="p", roles=["member"])
        self.beat()

    def add_conductor(self, name: str) -> Conductor:
        made = Conductor(
            self.url, self.scheduler, self.compute, self.placement, name, **self.options
        )
        self.conductors.append(made)
        return made

    def close(self) -> None:
        """Stop, and have the audit compare the books; the cluster of these tests is not real."""
        self.scheduler.gate.set()
        for conductor in self.conductors:
            if conductor.runner.periodic.alive:
                conductor.runner.stop()
        self.placement.down, self.compute.deaf = False, False
        found = differences(Gatherer(self.conductor.cloud).look())
        assert {one.kind for one in found} & BOOKS == self.leaves, found

    def beat(self, worker: str = "w1", *, published: bool = False, lost: str = "") -> None:
        """Send a heartbeat with all facts of the agents; disks are shared if a node is lost."""
        now = clock.utcnow()
        facts = tuple(
            HostFacts(
                host=name,
                cluster=self.clusters.get(name, "sim1"),
                node=name,
                uuid=f"uuid-{name}",
                worker=worker,
                availability_zone="nova",
                observed_at=now,
                vm_storage="local",
                online=name != lost,
                bridges=self.bridges,
                zones=("tenants",),
                images=(IMAGE,),
                capabilities={"linked_clone": True},
                storages=(
                    StorageFacts("local", "dir", bool(lost), True, 1000, 900),
                    *self.storages,
                ),
            )
            for name in self.hosts
        )
        image = ImageFacts(IMAGE, "debian-12", "shared:import/debian-12.qcow2", 1, "qcow2", "s")
        last = 99_999 + 5 * len(self.hosts)
        clusters = tuple(
            ClusterFacts(name, "9.2", True, (image,), 100_000, last)
            for name in sorted({"sim1", *self.clusters.values()})
        )
        heartbeat = Heartbeat(worker, now, self.hosts, facts, clusters, published=published)
        self.conductor.reports.heartbeat(heartbeat)

    def create(self, **changes: Any) -> list[str]:
        """Ask for servers and let their operations begin."""
        uuids, operations = self.accept(**changes)
        for operation in operations:
            self.conductor.runner.submit(operation)
        return uuids

    def accept(self, **changes: Any) -> tuple[list[str], Sequence[Operation]]:
        """Ask for servers, whose operations nobody carries out yet."""
        flavor = FlavorSnapshot("1", "m1.tiny", 1, 512, 1)
        request = dataclasses.replace(CreateServers("web", flavor, IMAGE, networks=()), **changes)
        created, operations = self.conductor.creates.create(self.ctxt, request)
        return list(created.uuids), operations

    def act(self, uuid: str, action: str) -> None:
        if action == "delete":
            operation = self.conductor.deletes.delete(self.ctxt, uuid)
        else:
            operation = self.conductor.accept.act(self.ctxt, uuid, action)
        if operation is not None:
            self.conductor.runner.submit(operation)

    def resize(self, uuid: str, flavor: FlavorSnapshot) -> None:
        operation = self.conductor.resizes.resize(self.ctxt, uuid, flavor)
        self.conductor.runner.submit(operation)

    def migrate(self, uuid: str, host: str | None = None) -> None:
        operation = self.conductor.resizes.migrate(self.ctxt, uuid, host)
        self.conductor.runner.submit(operation)

    def end_resize(self, uuid: str, action: str) -> None:
        operation = self.conductor.resizes.end(self.ctxt, uuid, action)
        self.conductor.runner.submit(operation)

    def rebuild(self, uuid: str, request: RebuildServer) -> None:
        operation = self.conductor.rebuilds.rebuild(self.ctxt, uuid, request)
        self.conductor.runner.submit(operation)

    def rescue(self, uuid: str, image_id: str = IMAGE) -> None:
        operation = self.conductor.rescues.rescue(self.ctxt, uuid, image_id, "secret")
        self.conductor.runner.submit(operation)

    def answer(self, command: Command, **outcome: Any) -> None:
        """The agent's last word on a command."""
        failure = outcome.get("failure")
        assert failure is None or isinstance(failure, Failure)
        report = Report(
            command.operation_id,
            command.attempt,
            command.resource_type,
            command.resource_id,
            command.placed.host,
            outcome=said(command, **outcome),
        )
        self.conductor.reports.take([report])

    def remember(self) -> Callable[[], None]:
        """Return what brings database and neighbours back to what they are now."""
        # Without types: values are kept as the database has them.
        tables = [
            sa.table(one.name, *(sa.column(each.name) for each in one.columns))
            for one in schema.metadata.sorted_tables
        ]
        with self.conductor.store.read() as connection:
            kept = {
                one: [dict(row) for row in connection.execute(sa.select(one)).mappings()]
                for one in tables
            }
        neighbours = self.placement, self.scheduler, self.compute
        held = [copy.deepcopy(_plain(one)) for one in neighbours]

        def bring_back(connection: sa.Connection) -> None:
            for table in reversed(tables):
                connection.execute(table.delete())
            for table, rows in kept.items():
                if rows:
                    connection.execute(table.insert(), rows)

        def back() -> None:
            self.conductors[-1].store.run(bring_back)
            for one, values in zip(neighbours, held, strict=True):
                for name, value in copy.deepcopy(values).items():
                    setattr(one, name, value)

        return back

    def row(self, uuid: str) -> Any:
        with self.conductor.store.read() as connection:
            return connection.execute(
                sa.select(schema.servers).where(schema.servers.c.uuid == uuid)
            ).one()

    def rows(self, table: sa.Table) -> list[Any]:
        with self.conductor.store.read() as connection:
            query = sa.select(table).order_by(*table.primary_key.columns)
            return list(connection.execute(query).all())

    def until(self, uuid: str, vm_state: str, task_state: str | None = None) -> Any:
        """Wait until the server is in that state; the runner's events drive it."""
        wanted = (vm_state, task_state)
        self._wait(lambda: self.row(uuid), lambda row: (row.vm_state, row.task_state) == wanted)
        return self.row(uuid)

    def until_operation(self, *states: str) -> None:
        """Wait until the operations, in the order of their ids, are in these states."""
        self._wait(
            lambda: self.rows(schema.operations),
            lambda rows: tuple(row.state for row in rows) == states,
        )

    def until_paused(self, seconds: float | None = None) -> None:
        """Wait until the last operation is nobody's, for later, or for so long at least."""
        self._wait(
            lambda: self.rows(schema.operations)[-1].not_before,
            lambda until: until is not None and (seconds is None or until >= clock.after(seconds)),
        )

    def until_faults(self, count: int) -> None:
        """Wait until so many faults are known."""
        self._wait(lambda: self.rows(schema.faults), lambda rows: len(rows) >= count)

    @staticmethod
    def _wait(look: Callable[[], Any], enough: Callable[[Any], bool]) -> None:
        deadline, tick = clock.after(120), threading.Event()
        for turn in itertools.count(1):
            if enough(seen := look()):
                return
            assert clock.utcnow() < deadline, seen
            tick.wait(min(0.005 * turn, 0.05))

    def make_due(self) -> None:
        """Every lease has run out and every pause is over."""

        def work(connection: sa.Connection) -> None:
            past = clock.after(-1)
            connection.execute(
                schema.operations.update().values(lease_expires_at=past, not_before=past)
            )

        self.conductor.store.run(work)
        self.conductor.runner.wake()

    def oversleep(self) -> None:
        """No conductor has worked for an hour, in which every deadline passed."""

        def work(connection: sa.Connection) -> None:
            signs = schema.leases.update().where(schema.leases.c.name.like("sign %"))
            connection.execute(signs.values(expires_at=clock.after(-3600)))
            times = {"deadline": clock.after(-1800), "lease_expires_at": clock.after(-3500)}
            connection.execute(schema.operations.update().values(times))

        self.conductor.store.run(work)

    def silence(self, *hosts: str) -> None:
        """No agent of these hosts has sent anything for an hour; none given: of any host."""
        silent = schema.services.c.host.in_(hosts or self.hosts)
        self.conductor.store.run(
            lambda c: c.execute(
                schema.services.update().where(silent).values(last_seen_at=clock.after(-3600))
            )
        )

    def may_start(self, command: Command, worker: str = "w1") -> bool:
        """What an agent is answered that is about to start a build's VM."""
        working = Working(command.operation_id, command.attempt, command.placed.host)
        return self.conductor.reports.may_start(worker, [working]) == [working]
