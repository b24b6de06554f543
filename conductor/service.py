"""A conductor process: RPC server, runner, and the configured subnets and flavors."""

from __future__ import annotations

from oslo_config import cfg

from common import context, rpc
from common.clients import credentials
from common.errors import ConfigurationError, Unavailable
from common.log import logger
from common.messages.topics import CONDUCTOR_EVENTS_TOPIC, CONDUCTOR_TOPIC
from common.process import liveness, names
from common.process.health import Health
from common.resources import quotas
from common.rpc.events import ConductorEvents
from common.rpc.messaging import oslo_messaging
from compute.client import ComputeClient
from conductor.audit.auditor import Auditor
from conductor.audit.gather import Gatherer
from conductor.audit.heal import Healer
from conductor.audit.restoring.restorer import Restorer
from conductor.cloud import Cloud
from conductor.endpoints.audits import AuditEndpoint
from conductor.endpoints.bulk_migrations import BulkMigrationEndpoint
from conductor.endpoints.events import EventEndpoint
from conductor.endpoints.groups import GroupEndpoint
from conductor.endpoints.hosts.aggregates import AggregateEndpoint, Notifier
from conductor.endpoints.hosts.services import ServiceEndpoint
from conductor.endpoints.images import ImageEndpoint
from conductor.endpoints.networks.address_groups import AddressGroupEndpoint
from conductor.endpoints.networks.networks import NetworkEndpoint
from conductor.endpoints.networks.ports import PortEndpoint
from conductor.endpoints.networks.security_groups import SecurityGroupEndpoint
from conductor.endpoints.quotas import QuotaEndpoint
from conductor.endpoints.refusals import RefusalEndpoint
from conductor.endpoints.servers.consoles import ConsoleEndpoint
from conductor.endpoints.servers.flavors import FlavorEndpoint
from conductor.endpoints.servers.guests import GuestEndpoint
from conductor.endpoints.servers.interfaces import InterfaceEndpoint
from conductor.endpoints.servers.keypairs import KeyPairEndpoint
from conductor.endpoints.servers.manage import ManageEndpoint
from conductor.endpoints.servers.server_groups import ServerGroupEndpoint
from conductor.endpoints.servers.server_volumes import ServerVolumeEndpoint
from conductor.endpoints.servers.servers import ServerEndpoint
from conductor.endpoints.volumes.backups import BackupEndpoint
from conductor.endpoints.volumes.messages import VolumeMessageEndpoint
from conductor.endpoints.volumes.snapshots import VolumeSnapshotEndpoint
from conductor.endpoints.volumes.transfers import VolumeTransferEndpoint
from conductor.endpoints.volumes.types import VolumeTypeEndpoint
from conductor.endpoints.volumes.volumes import VolumeEndpoint
from conductor.endpoints.whatif import WhatIfEndpoint
from conductor.engine.history import History
from conductor.engine.periodic import Periodic
from conductor.engine.runner import TIDY_SECONDS, Flow, Runner
from conductor.images.stale_imports import SECONDS, StaleImports
from conductor.networks import stale_zone_retry
from conductor.networks.stale_zone_retry import StaleZoneRetry
from conductor.notifications.notifications import Notifications
from conductor.record_metrics import RecordMetrics
from conductor.rpc import Endpoints
from conductor.seed import parse_flavor
from conductor.servers import table as all_flows
from conductor.servers.bulk import room
from conductor.servers.bulk.room import MoveRoom
from conductor.servers.create.create import Create
from conductor.servers.reclaim import RECLAIM_SECONDS, Reclaim
from conductor.servers.waiting import waits
from conductor.servers.waiting.waits import Waits
from conductor.store import restored
from conductor.store.ledger import leases, pulse
from conductor.store.networks import networks
from conductor.store.servers import flavors
from conductor.store.transactions import Store, Transaction
from conductor.sync import filters
from conductor.sync.filters import Filters
from conductor.sync.reports import Reports
from conductor.sync.vm_states import VmSync
from conductor.tracing.tracer import Tracer
from db import engine
from db.reads.ledger.calls import looking
from placement.client import PlacementClient
from scheduler.client import SchedulerClient

LOG = logger(__name__)


class ConductorService:
    """Starts and stops one conductor."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        transport: oslo_messaging.Transport,
        placement: PlacementClient | None = None,
        scheduler: SchedulerClient | None = None,
    ) -> None:
        if not conf.database.connection:
            raise ConfigurationError("[database] connection is not set.")
        name = names.of(conf, "conductor")
        url, pool = conf.database.connection, conf.database.pool_size
        self.store = Store(engine.writer(url, pool), engine.reader(url, pool))
        self._conf, self._name = conf, name
        down = conf.conductor.host_down_seconds
        self._record_metrics = RecordMetrics(self.store, conf.metrics.record_seconds, down)
        self._compute = ComputeClient(
            transport,
            cloud=lambda: cloud.id,
            epoch=lambda number: cloud.guard.epoch(number),  # noqa: PLW0108 - made below
        )
        often = liveness.interval(conf.conductor.host_down_seconds)
        self._beat = liveness.Beat(transport, "nova-conductor", name, often)
        flows: dict[str, Flow] = {}
        self.runner = Runner(
            conf,
            self.store,
            name,
            flows,
            lambda one: cloud.guard.require(one),  # noqa: PLW0108 - made below
            lambda: cloud.guard.expire(),  # noqa: PLW0108
        )
        cloud = Cloud(
            conf=conf,
            name=name,
            store=self.store,
            scheduler=scheduler or SchedulerClient(transport),
            compute=self._compute,
            placement=placement or PlacementClient(credentials.adapter(conf, "placement")),
            quota=quotas.defaults(conf),
            wake=self.runner.wake,
            bus_up_seconds=self._beat.hearing.for_seconds,
            start=self.runner.submit,
        )
        self._guard = cloud.guard
        self.store.wake = self.runner.wake
        cloud.placement.on_freed = cloud.news.freed
        cloud.news.listen(self._wake_waiting)
        self.store.follow = cloud.guard.follow
        flows |= all_flows.flows(cloud)
        self.runner.periodic.add(
            Periodic("delete_history", TIDY_SECONDS, History(cloud).tidy, alone=True)
        )
        if conf.conductor.reclaim_instance_interval:
            reclaim = Periodic("reclaim", RECLAIM_SECONDS, Reclaim(cloud, self.runner).look)
            self.runner.periodic.add(reclaim)
        self.runner.periodic.add(
            Periodic(waits.NAME, waits.SCANS * conf.conductor.scan_seconds, Waits(cloud).look)
        )
        self.runner.periodic.add(
            Periodic(room.NAME, waits.SCANS * conf.conductor.scan_seconds, MoveRoom(cloud).look)
        )
        self.runner.periodic.add(
            Periodic(filters.NAME, filters.SECONDS, Filters(cloud).look, apart=True)
        )
        stale = StaleImports(cloud)
        self.runner.periodic.add(Periodic("end_imports", SECONDS, stale.look, alone=True))
        zones = Periodic(
            stale_zone_retry.NAME, stale_zone_retry.SECONDS, StaleZoneRetry(cloud).look, alone=True
        )
        self.runner.periodic.add(zones)
        self._notifications = Notifications.of(conf, self.store, name)
        if self._notifications is not None:
            for task in self._notifications.periodic:
                self.runner.periodic.add(task)
        self._tracer = Tracer.of(conf, self.store, name)
        if self._tracer is not None:
            self.store.recorders = (*self.store.recorders, self._tracer)
        self._notifier = Notifier(cloud)
        healer = Healer(cloud, self.runner)
        gatherer = Gatherer(cloud)
        restorer = Restorer(cloud, gatherer, self.runner)
        self.auditor = Auditor(cloud, gatherer, healer, restorer)
        vm_sync = VmSync(cloud, self.runner)
        reports = Reports(cloud, self.runner, all_flows.endings(cloud))
        events: ConductorEvents = EventEndpoint(cloud, reports, vm_sync, self._notifier)
        services, consoles = ServiceEndpoint(cloud, self._notifier), ConsoleEndpoint(cloud)
        endpoints: Endpoints = (
            ServerEndpoint(cloud, self.runner, Create(cloud).begin_many),
            ManageEndpoint(cloud, self.runner, vm_sync),
            WhatIfEndpoint(cloud),
            BulkMigrationEndpoint(cloud, self.runner, self._notifier),
            FlavorEndpoint(cloud),
            KeyPairEndpoint(cloud),
            QuotaEndpoint(cloud),
            services,
            ServerGroupEndpoint(cloud),
            AggregateEndpoint(cloud, self._notifier),
            AuditEndpoint(cloud, self.auditor, healer),
            consoles,
            GuestEndpoint(cloud),
            InterfaceEndpoint(cloud, self.runner),
            PortEndpoint(cloud, self.runner),
            NetworkEndpoint(cloud),
            SecurityGroupEndpoint(cloud, lambda: self.runner.periodic.wake(filters.NAME)),
            AddressGroupEndpoint(cloud, lambda: self.runner.periodic.wake(filters.NAME)),
            ImageEndpoint(cloud),
            VolumeEndpoint(cloud),
            VolumeSnapshotEndpoint(cloud),
            VolumeTransferEndpoint(cloud),
            VolumeMessageEndpoint(cloud),
            BackupEndpoint(cloud),
            VolumeTypeEndpoint(cloud),
            ServerVolumeEndpoint(cloud, self.runner),
            RefusalEndpoint(cloud),
            GroupEndpoint(cloud, self.runner),
        )
        look = looking(self.store.read)
        published = (events, services, consoles)
        self._servers = (
            rpc.Server(transport, CONDUCTOR_TOPIC, name, endpoints, look=look),
            rpc.Server(transport, CONDUCTOR_EVENTS_TOPIC, name, published, look=look),
        )

    @property
    def health(self) -> Health:
        """It lives if it consumes and its periodic tasks run; it needs database and bus."""
        alive = {"messages": self._beat.consumes, "periodic tasks": self._runs}
        ready = {"database": self.store.answers, "bus": self._beat.bus}
        return Health(alive, ready, {"record": lambda: self._guard.held})

    def _wake_waiting(self) -> None:
        for name in (waits.NAME, room.NAME):
            self.runner.periodic.wake(name)

    def _runs(self) -> bool:
        return self.runner.periodic.alive

    def start(self) -> None:
        """Create configured subnets and flavors, then listen and work.

        Agents are asked again, as reports are lost while no conductor's queue exists.
        """
        self.store.run(lambda c: restored.begin_to_compare(c, self._name))
        self.store.run(self._seed)
        for server in self._servers:
            server.start()
        self._compute.announce(context.internal())
        self.runner.start()
        self._notifier.start()
        if self._notifications is not None:
            self._notifications.start()
        if self._tracer is not None:
            self._tracer.start()
        self.auditor.start()
        self._beat.start()

    def stop(self) -> None:
        """Take no more requests, finish those in progress; the rest remains in the ledger."""
        self._beat.stop()
        for server in self._servers:
            server.stop()
        self.auditor.stop()
        self._notifier.stop()
        self.runner.stop()
        if self._notifications is not None:
            self._notifications.stop()
        if self._tracer is not None:
            self._tracer.stop()

        def end(connection: Transaction) -> None:
            leases.give_back(connection, self._name)
            pulse.end(connection, self._name)

        names.release(self._conf, "conductor", self._name)
        try:
            self.store.run(end)
        except Unavailable as error:
            LOG.warning("The leases of %s were not released; they expire: %s", self._name, error)

    def _seed(self, connection: Transaction) -> None:
        for text in self._conf.networks.subnets:
            networks.ensure_subnet(connection, networks.parse_subnet(text))
        networks.set_vlans(connection, self._conf.networks.vlans)
        flavors.seed(connection, [parse_flavor(text) for text in self._conf.seed.flavors])
