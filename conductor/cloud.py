"""What every flow of the conductor works with, and how it ends or postpones an operation."""

from __future__ import annotations

import datetime
import functools
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from oslo_config import cfg

from common import failures
from common.failures import Verdict
from common.messages.commands import Destroy, Placed
from common.messages.reports import Failure, Outcome
from common.states import OperationState
from compute.client import ComputeClient
from conductor.plans import Place
from conductor.store import identity, leases, registry
from conductor.store import operations as ledger
from conductor.store.operations import Operation
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
    """Have operations looked for that are due now."""
    heard_for: Callable[[], float]
    """For how many seconds agents could be heard without a gap."""

    @functools.cached_property
    def id(self) -> str:
        """What tells this cloud's templates from those of others that share a cluster."""
        with self.store.read() as connection:
            return identity.cloud_id(connection)

    @property
    def lease_seconds(self) -> float:
        """How long a lease lasts without a sign of life."""
        return float(self.conf.conductor.lease_seconds)

    def worker_of(self, connection: Transaction, host: str) -> str | None:
        """Return the worker that carries the host's agent now; None while it is down."""
        if host in self.down(connection):
            return None
        return registry.workers(connection, [host]).get(host)

    def down(self, connection: Transaction) -> frozenset[str]:
        """The hosts whose agents are down: they were silent for long, and could be heard."""
        seconds = self.conf.conductor.host_down_seconds
        if self.heard_for() < seconds:
            seconds = math.inf
        return frozenset(registry.silent(connection, registry.COMPUTE, seconds))

    def take_to(self, operation: Operation, host: str) -> str | None:
        """Hand the lease to the worker that carries the host now; None while it is down."""

        def work(connection: Transaction) -> str | None:
            worker = self.worker_of(connection, host)
            if worker is not None:
                leases.hand_over(connection, operation.id, worker, self.lease_seconds)
            return worker

        return self.store.run(work)

    def destroy(
        self,
        operation: Operation,
        where: Placed,
        deadline: datetime.datetime,
        *,
        drive_only: bool = False,
        stopped_on: str | None = None,
    ) -> None:
        """Have what is provably the operation's server's removed; later where no agent answers."""
        worker = self.take_to(operation, where.host)
        if worker is None:
            self.wait(operation, backoff(operation.attempt))
            return
        self.compute.destroy(
            operation.ctxt,
            worker,
            Destroy(
                operation.id,
                operation.attempt,
                operation.server_uuid,
                where,
                deadline,
                drive_only=drive_only,
                stopped_on=stopped_on,
            ),
        )

    def wait(self, operation: Operation, seconds: float) -> None:
        """Nobody's for that long."""
        self.store.run(lambda c: leases.postpone(c, operation.id, seconds))


def placed(operation: Operation) -> Placed | None:
    """Return where the plan puts the VM, once a VMID is reserved."""
    target = operation.plan.target
    if target.host is None or target.vmid is None:
        return None
    return Placed(target.host, target.cluster or "", target.node or "", target.vmid)


def backoff(count: int) -> float:
    """Return seconds to pause before the try after the ``count``-th, jitter included.

    Whoever pauses writes it down (``not_before``), so a restart doesn't begin it anew.
    """
    jitter = random.uniform(1 - failures.JITTER, 1 + failures.JITTER)  # noqa: S311
    return failures.backoff_seconds(count) * jitter


def failure_of(outcome: Outcome) -> Failure:
    """Return the failure of an outcome that wasn't ok."""
    if outcome.failure is None:
        raise ValueError("an outcome that is not ok must carry its failure")
    return outcome.failure


def not_again(connection: Transaction, target: Place, verdict: Verdict) -> tuple[str, ...]:
    """Hosts that the next attempt leaves out."""
    if verdict == Verdict.QUARANTINE:
        return ()
    if verdict == Verdict.OTHER_CLUSTER:
        return registry.hosts_in(connection, str(target.cluster))
    return (str(target.host),)


def unwind_later(connection: Transaction, operation: Operation, message: str) -> None:
    """What the operation made is still there, or may be: it stays open until it is seen gone."""
    # What was asked is needed no more, and may be secret.
    ledger.save(
        connection, operation.id, state=OperationState.UNWINDING, message=message, params={}
    )
    leases.postpone(connection, operation.id, backoff(1))
