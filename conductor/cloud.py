"""What all flows of the conductor use, and how they end or postpone an operation."""

from __future__ import annotations

import datetime
import functools
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from oslo_config import cfg

from common import clock, failures
from common.errors import Unavailable
from common.failures import Verdict
from common.messages.commands import Command, Destroy, Placed
from common.messages.reports import Category, Failure, Outcome
from common.resources.filtering import Filtering
from compute.client import ComputeClient
from conductor.plans import Place
from conductor.restore_guard import RestoreGuard
from conductor.room_news import RoomNews
from conductor.store import cloud_identity
from conductor.store.hosts import registry
from conductor.store.ledger import leases
from conductor.store.networks.pools import Within
from conductor.store.networks.unknown_vms import EVERY
from conductor.store.records import Operation
from conductor.store.servers import vm_states
from conductor.store.transactions import Store, Transaction
from placement.client import PlacementClient
from scheduler.client import SchedulerClient


@dataclass(frozen=True)
class Cloud:
    """The collaborators of one conductor."""

    conf: cfg.ConfigOpts
    name: str
    store: Store
    scheduler: SchedulerClient
    compute: ComputeClient
    placement: PlacementClient
    quota: Mapping[str, int]
    """Default limits."""
    wake: Callable[[], None]
    """Look for operations that are due now."""
    bus_up_seconds: Callable[[], float]
    """For how many seconds reports of agents could arrive without a gap."""
    start: Callable[[Operation], None]
    """Carry out an operation that this conductor has just begun."""
    news: RoomNews = field(default_factory=RoomNews)
    """Who looks when room may have become free on hosts."""
    since: datetime.datetime = field(default_factory=clock.utcnow)
    """When this conductor began: its record may have been restored before."""

    @functools.cached_property
    def filtering(self) -> Filtering[Transaction]:
        """Whether ports that are made now are filtered."""
        return Filtering(self.conf, registry.unfiltered)

    @functools.cached_property
    def guard(self) -> RestoreGuard:
        """Holds what destroys while the database may be older than the clusters."""
        return RestoreGuard(self.store, self.answering)

    @property
    def id(self) -> str:
        """The id that distinguishes this cloud's templates from others' in a shared cluster."""
        if not self._id:
            # It was asked for before the database had one.
            del self.__dict__["_id"]
        return self._id

    @functools.cached_property
    def _id(self) -> str:
        with self.store.read() as connection:
            return cloud_identity.cloud_id(connection)

    @property
    def lease_seconds(self) -> float:
        """How long a lease lasts without renewal."""
        return float(self.conf.conductor.lease_seconds)

    def worker_of(self, connection: Transaction, host: str) -> str | None:
        """Return the worker that carries the host's agent now; None while it is down."""
        return registry.worker_of(connection, host, self.patience())

    def down(self, connection: Transaction) -> frozenset[str]:
        """Return the hosts whose agents are down: silent for long although the bus delivers."""
        return frozenset(registry.silent(connection, registry.COMPUTE, self.patience()))

    def answering(self, connection: Transaction) -> dict[str, tuple[str, ...]]:
        """Return the clusters that answer, as far as is known by now, each with its workers."""
        certain = self.patience() < math.inf
        return vm_states.answering(connection, self.down(connection), certain=certain)

    def within(self, cluster: str = "") -> Within:
        """Return whose VMs must be known before a cluster's build is given addresses: those of all
        clusters while the record may have lost servers, for a network may reach over clusters."""
        return Within(EVERY if self.guard.comparing else cluster, self.since)

    def patience(self) -> float:
        """Return for how many seconds an agent may be silent before it counts as down."""
        seconds = float(self.conf.conductor.host_down_seconds)
        return math.inf if self.bus_up_seconds() < seconds else seconds

    def take_to(self, operation: Operation, host: str) -> str | None:
        """Pass the lease to the worker that carries the host now; None while it is down.

        Raises Unavailable instead for an operation that overslept: nothing of it fails before an
        agent has looked. Raises Held for an operation that waits for an operator's decision.
        """
        self.guard.require(operation)
        if operation.handed_to is not None and operation.handed_to[0] == host:
            return operation.handed_to[1]

        def work(connection: Transaction) -> str | None:
            worker = self.worker_of(connection, host)
            if worker is not None:
                leases.hand_over(connection, operation, worker, self.lease_seconds)
            return worker

        taken = self.store.run(work)
        if taken is None and operation.overslept:
            raise Unavailable(silence(host))
        return taken

    def send(self, operation: Operation, command: Command) -> bool:
        """Pass the lease to the agent of the command's place, and send it the command.

        Return whether it answers. Raises as ``take_to``.
        """
        worker = self.take_to(operation, command.placed.host)
        if worker is not None:
            self.compute.execute(operation.ctxt, worker, command)
        return worker is not None

    def destroy(
        self,
        operation: Operation,
        where: Placed,
        deadline: datetime.datetime,
        *,
        drive_only: bool = False,
    ) -> None:
        """Have the operation's VM removed, as far as provably ours; later if no agent answers."""
        command = Destroy(*operation.about(where, deadline), drive_only=drive_only)
        if not self.send(operation, command):
            self.wait(operation, backoff(operation.attempt))

    def wait(self, operation: Operation, seconds: float) -> None:
        """Postpone the operation: no process works on it for that long."""
        self.store.run(lambda c: leases.postpone(c, operation.id, seconds))


def silence(host: str | None) -> str:
    """Return why nothing can be sent to a host: its agent is down."""
    return f"The agent of host {host} does not answer."


def silent(host: str | None) -> Failure:
    """Return the failure of a command to a host whose agent is down."""
    return Failure(Category.NODE_UNHEALTHY, silence(host), host=host)


def placed(operation: Operation) -> Placed | None:
    """Return where the plan puts the VM, once a VMID is reserved."""
    target = operation.plan.target
    if target.host is None or target.vmid is None:
        return None
    return Placed(target.host, target.cluster or "", target.node or "", target.vmid)


def backoff(count: int) -> float:
    """Return the seconds to wait before the try after the ``count``-th, jitter included.

    It is stored (``not_before``), so a restart doesn't begin the wait again.
    """
    jitter = random.uniform(1 - failures.JITTER, 1 + failures.JITTER)  # noqa: S311
    return failures.backoff_seconds(count) * jitter


def failure_of(outcome: Outcome) -> Failure:
    """Return the failure of an outcome that wasn't ok."""
    if outcome.failure is None:
        raise ValueError("an outcome that is not ok must carry its failure")
    return outcome.failure


def not_again(connection: Transaction, target: Place, verdict: Verdict) -> tuple[str, ...]:
    """Return the hosts that the next attempt avoids."""
    if verdict == Verdict.QUARANTINE:
        return ()
    if verdict == Verdict.OTHER_CLUSTER:
        return registry.hosts_in(connection, str(target.cluster))
    return (str(target.host),)
