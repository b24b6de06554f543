"""One worker process: endpoints, executor, refresh loops, heartbeats and reports."""

from __future__ import annotations

import functools
import threading
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from oslo_config import cfg

from common import context, rpc
from common.errors import Unavailable
from common.log import logger
from common.messages import tenures
from common.messages.commands import Command, MakeVnet, StoreImage
from common.messages.facts import HostFacts, VmStates
from common.messages.guests import GuestOwner
from common.messages.health import GuestCheck, GuestHealth
from common.messages.reports import Outcome
from common.messages.topics import ANNOUNCE_TOPIC, COMPUTE_TOPIC
from common.process import names
from common.process.health import Health
from common.resources.aggregates import Ratios
from common.rpc import events
from common.rpc.events import ConductorEvents, WorkerEvents
from compute.hypervisor.port import GuestUse, Hypervisor
from compute.observed import guest_pings
from compute.observed.console_logs import ConsoleLogs
from compute.observed.consoles import Consoles
from compute.observed.facts import HostFactsCache
from compute.observed.guest_metrics import GuestMetrics
from compute.observed.health_checks import HealthChecks, probe
from compute.observed.host_metrics import HostMetrics
from compute.observed.measurements import Measurements
from compute.observed.observe import Observer
from compute.observed.vm_states import VmChanges
from compute.rpc_api import WorkerRpc
from compute.worker import tenure
from compute.worker.batching import Coalesced
from compute.worker.executor import Executor
from compute.worker.heartbeat import Heartbeats
from compute.worker.manager import EventEndpoint, Manager
from compute.worker.permission import Permission
from compute.worker.publisher import Placement, Publisher
from compute.worker.reporter import Reporter
from compute.worker.tenure import Tenure

if TYPE_CHECKING:
    from common.rpc.messaging import oslo_messaging

LOG = logger(__name__)


class Rounds(Protocol):
    """Looks after the clusters beside all else, see ``compute.doctor.rounds``."""

    def start(self) -> None:
        """Begin; returns at once."""

    def seen(self, cluster: str) -> None:
        """Note that a cluster was refreshed, or doesn't answer."""

    def stop(self) -> None:
        """Begin nothing further."""

    def join(self, seconds: float) -> None:
        """Wait for what is in progress."""


class ComputeService:
    """The agents of all hosts of the given clusters, in this process.

    ``conf`` has ``compute.config`` registered, ``transport`` is of ``common.rpc``, ``placement``
    is a ``placement.client.PlacementClient`` or None, when nothing is published. ``rounds``
    examine the clusters beside all else.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        transport: oslo_messaging.Transport,
        hypervisors: Sequence[Hypervisor],
        placement: Placement | None,
        rounds: Rounds | None = None,
    ) -> None:
        self._conf, options = conf, conf.compute
        self._rounds = rounds
        self.worker: str = options.worker
        self._hypervisors = {one.cluster: one for one in hypervisors}
        self._stop_seconds = options.stop_seconds
        self._facts, vm_changes = HostFactsCache(), VmChanges(self.worker)
        self._host_metrics = HostMetrics(self._facts, conf.metrics.hosts)
        self._guests = GuestMetrics(self._owners) if conf.metrics.guests else None
        self._reporter = Reporter(transport)
        self._publisher = Publisher(placement) if placement is not None else None
        self._logs = ConsoleLogs(conf, self._hypervisors, self.worker)
        self._vm_changes = vm_changes
        self._tenure = Tenure(
            transport,
            self.worker,
            [tenures.unit(one.cluster, one.nodes) for one in hypervisors],
            lambda: self._heartbeats.consumes(),  # noqa: PLW0108 - made below
            self._carry,
        )
        for one in hypervisors:
            one.guard_writes(tenure.guard(self._tenure, one.cluster))
        self._executor = Executor(
            self._hypervisors,
            self._reporter.report,
            options.threads,
            options.shutdown_seconds,
            Permission(transport, self._tenure),
            self._after,
        )
        self._heartbeats = Heartbeats(
            transport,
            self.worker,
            options.heartbeat_seconds,
            self._facts,
            vm_changes,
            self._executor.working,
            self._executor.queues,
            address=lambda: self._tenure.worker,
        )
        self._conductor = events.to_conductor(transport)
        self._consoles = Consoles(conf, self._logs)
        self._health = HealthChecks(
            self._members,
            self._report_health,
            functools.partial(probe, ping=guest_pings.of(self._hypervisors, self.worker)),
            options.health_checks,
        )
        manager: WorkerRpc = Manager(
            self._hypervisors,
            self._executor,
            self._heartbeats,
            Coalesced(self._introduce),
            self._consoles,
            self._logs,
            Measurements(),
            self._look_at_all,
        )
        listener: WorkerEvents = EventEndpoint(self._heartbeats, self._set_ratios)
        self._servers = [
            rpc.Server(transport, COMPUTE_TOPIC, self.worker, [manager]),
            rpc.Server(transport, ANNOUNCE_TOPIC, self.worker, [listener], workers=2),
        ]
        self._observe_seconds = options.observe_seconds
        self._observers: dict[str, Observer] = {}

    @property
    def address(self) -> str:
        """The worker with its tenure, as commands name it; empty: it carries nothing."""
        return self._tenure.worker

    @property
    def health(self) -> Health:
        """It lives if it consumes its ticks; it needs the bus and all clusters that it carries."""
        clusters = {
            f"cluster {name}": functools.partial(self._answers, name) for name in self._hypervisors
        }
        alive = {"messages": self._heartbeats.consumes}
        return Health(alive, {"bus": self._heartbeats.hears, **clusters})

    def start(self) -> None:
        """Start; returns at once. The first facts are sent after the first refresh.

        Raises ConfigurationError if another worker of this machine has its name.
        """
        names.hold_worker(self._conf, self.worker)
        self._reporter.start()
        if self._publisher is not None:
            self._publisher.start()
        for server in self._servers:
            server.start()
        self._heartbeats.start()
        self._tenure.start()
        self._health.start()
        if self._rounds is not None:
            self._rounds.start()
        self._conductor.cast(context.internal(), ConductorEvents.publish_aggregates)
        LOG.info("Worker %s may carry %s.", self.worker, ", ".join(sorted(self._hypervisors)))

    def stop(self) -> None:
        """Take no more messages, stop operations without unwinding, send what is queued.

        Then another worker may carry on.
        """
        self._heartbeats.stop()
        self._health.stop()
        if self._rounds is not None:
            self._rounds.stop()
        observers = list(self._observers.values())
        for observer in observers:
            observer.stop()
        stopping = [threading.Thread(target=server.stop) for server in self._servers]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()
        self._consoles.stop()
        self._logs.stop()
        if not self._executor.stop(self._stop_seconds):
            LOG.warning("Operations did not end within %d s.", self._stop_seconds)
        self._reporter.stop()
        if self._publisher is not None:
            self._publisher.stop()
        for observer in observers:
            observer.join(1)
        self._tenure.stop()
        self._tenure.release()
        names.release(self._conf, names.WORKER, self.worker)
        if self._rounds is not None:
            self._rounds.join(1)
        for hypervisor in self._hypervisors.values():
            hypervisor.close()

    def _answers(self, cluster: str) -> bool:
        """Return whether a cluster answers; another worker may carry its agents."""
        observer = self._observers.get(cluster)
        return observer is None or observer.answers()

    def _carry(self, gained: Collection[str], lost: Collection[str]) -> None:
        """Observe the clusters whose agents it carries now, and no others."""
        for cluster in lost:
            observer = self._observers.pop(cluster, None)
            if observer is not None:
                observer.stop()
            self._facts.forget(cluster)
            self._vm_changes.forget(cluster)
            self._seen_guests(cluster, ())
        if lost:
            LOG.warning("This worker carries %s no longer.", ", ".join(sorted(lost)))
        if not gained:
            return
        LOG.info("Worker %s carries %s.", self._tenure.worker, ", ".join(sorted(gained)))
        if self._publisher is not None:
            self._publisher.forget()
        self._heartbeats.begin_tenure()
        for cluster in gained:
            self._observers[cluster] = self._observer(self._hypervisors[cluster])
            self._observers[cluster].start()

    def _observer(self, hypervisor: Hypervisor) -> Observer:
        return Observer(
            *(hypervisor, self._facts, self._vm_changes, self._observe_seconds, self._news),
            self._looked,
            self._seen_guests,
        )

    def _seen_guests(self, cluster: str, uses: Sequence[GuestUse]) -> None:
        if self._guests is not None:
            self._guests.update(cluster, uses)

    def _owners(self) -> list[GuestOwner]:
        """Return whose the VMs on its hosts are. Raises MicronovaError."""
        return self._conductor.call(
            context.internal(), ConductorEvents.owners, worker=self.address
        )

    def _members(self) -> list[GuestCheck]:
        """Return which members of groups on its hosts are checked. Raises MicronovaError."""
        worker = self.address
        if not worker:
            return []
        events = ConductorEvents.health_checks
        return self._conductor.call(context.internal(), events, worker=worker)

    def _report_health(self, found: Sequence[GuestHealth]) -> None:
        """Report what the checks of members say. Raises MicronovaError."""
        self._conductor.call(
            context.internal(),
            ConductorEvents.report_health,
            worker=self.address,
            found=list(found),
        )

    def _introduce(self) -> None:
        """Publish all hosts. A conductor without records asks for it at each of many messages."""
        if self._publisher is not None:
            self._publisher.publish_again(self._facts.all())
        self._heartbeats.announce(published=True)

    def _look_at_all(self, cluster: str) -> VmStates:
        """Refresh a cluster and return all its VMs, with the operations whose commands came before
        that. Raises Unavailable."""
        operations = self._executor.operations(cluster)
        observer = self._observers.get(cluster)
        if observer is None:
            raise Unavailable(f"This worker does not observe cluster {cluster}.")
        # If it is away, a look would hold a thread that commands need. Its observer looks, too.
        if observer.reached is not False:
            observer.look()
        seen = self._vm_changes.everything(cluster) if observer.reached else None
        if seen is None:
            raise Unavailable(f"Cluster {cluster} can't be looked at.")
        return replace(seen, worker=self.address, operations=operations)

    def _set_ratios(self, ratios: Ratios) -> None:
        news = self._facts.update_ratios(ratios)
        if news:
            self._news(news)

    def _after(self, command: Command, outcome: Outcome) -> None:
        """Publish an image or a network that a cluster has now before its outcome: servers are
        made of it."""
        self._logs.after(command, outcome)
        if isinstance(command, (StoreImage, MakeVnet)) and outcome.ok:
            observer = self._observers.get(command.placed.cluster)
            if observer is not None:
                observer.look_safely()

    def _looked(self, cluster: str) -> None:
        if self._rounds is not None:
            self._rounds.seen(cluster)

    def _news(self, hosts: list[HostFacts]) -> None:
        if self._publisher is not None:
            self._publisher.publish(hosts)
        self._heartbeats.tick()
