"""Runs operations: new ones at once, abandoned and postponed ones when they are due."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from oslo_config import cfg

from common import clock
from common.errors import MicronovaError, StaleTransition, Unavailable
from common.log import logger
from common.messages.reports import Outcome
from common.metrics import table
from conductor.engine import overslept
from conductor.engine.periodic import Periodic, Periodics
from conductor.engine.thread_pool import ThreadPool
from conductor.plans import MovePlan
from conductor.restore_guard import Held
from conductor.store import restored
from conductor.store.ledger import bulk_migrations, leases, pulse
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from conductor.store.servers import vmids
from conductor.store.transactions import Store, Transaction, after_commit

LOG = logger(__name__)

#: seconds until an operation is tried again after a service it needs didn't answer
UNAVAILABLE_PAUSE_SECONDS = 5.0
#: period of the look for expired leases, and of other such tasks
TIDY_SECONDS = 60.0
#: the periodic task that takes over what is due
SCAN = "scan"


#: actions that wait for a scheduler, which have threads of their own
BUILD = "create"

#: begins many operations; yields those that continue, and whether from their present stage
Begin = Callable[[Sequence[Operation]], Iterable[tuple[Operation, bool]]]


#: raises Unavailable if the operation is to wait
Require = Callable[[Operation], None]


def _nothing(_: Operation) -> None:
    """Let every operation be taken up."""


class Flow(Protocol):
    """The flow of one kind of operation."""

    def resume(self, operation: Operation, *, fresh: bool) -> None:
        """Continue from the record; ``fresh``: the operation is new."""

    def finished(self, operation: Operation, outcome: Outcome) -> None:
        """Take the agent's outcome."""

    def overtaken(self, operation: Operation) -> None:
        """Handle that another operation has taken the server."""

    def may_undo(self, operation: Operation) -> bool:
        """Return whether its agent may undo: no other operation decides about the VM."""


class Submits(Protocol):
    """What takes operations: a runner, as the endpoints see it."""

    def submit(self, operation: Operation) -> None:
        """Run an operation whose lease is ours."""


class Runner:
    """Two pools of threads, and periodic tasks, above all the look for due operations.

    A build may wait long for a scheduler; agents' outcomes and all other operations must not wait
    behind it, so they have threads of their own.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        store: Store,
        name: str,
        flows: Mapping[str, Flow],
        require: Require = _nothing,
        on_gap: Callable[[], None] | None = None,
    ) -> None:
        """``require`` raises Unavailable if an operation is to wait before it is taken up.

        ``on_gap`` is called after a time in which no conductor ran.
        """
        self._on_gap = on_gap
        self._options = conf.conductor
        self._store = store
        self._name = name
        self._flows, self._require = flows, require
        self._signed_at: datetime.datetime | None = None
        self.periodic = Periodics("periodic", store, name)
        self.periodic.add(Periodic(SCAN, self._options.scan_seconds, self.look))
        self.periodic.add(Periodic("end_quarantines", TIDY_SECONDS, self.tidy))
        self._builds = ThreadPool("build", self._options.workers, self.wake)
        self._others = ThreadPool("operation", self._options.workers, self.wake)

    def start(self) -> None:
        """Begin to look for what is due; the first look is at once."""
        self.periodic.start()

    def stop(self) -> None:
        """Take nothing new, finish what is running."""
        self.periodic.stop()
        for pool in (self._builds, self._others):
            pool.close()

    def wake(self) -> None:
        """Look for due operations now; in a thread that works on one, look right after its work.

        The operation that was made due may be the thread's own, which no look takes from it.
        """
        if not any(pool.defer() for pool in (self._builds, self._others)):
            self.periodic.wake(SCAN)

    def submit(self, operation: Operation, *, fresh: bool = True) -> None:
        """Run an operation whose lease is ours."""
        flow = self._flows[operation.action]

        def work() -> None:
            if self._still_ours(operation):
                self._require(operation)
                if not fresh:
                    table.OPERATION_TAKEOVERS.count(operation.action)
                    LOG.info("Taking over operation %s (%s).", operation.id, operation.action)
                flow.resume(operation, fresh=fresh)

        pool = self._builds if operation.action == BUILD else self._others
        self._run(pool, operation, work)

    def submit_many(self, operations: Sequence[Operation], begin: Begin) -> None:
        """Run operations of one request, whose leases are ours: ``begin`` them together."""

        def work() -> None:
            try:
                going = begin(operations)
            except MicronovaError as error:
                # Nothing is lost: each reads its record and begins by itself.
                LOG.warning(
                    "%d builds are scheduled one by one: %s", len(operations), error.message
                )
                going = [(operation, False) for operation in operations]
            for operation, fresh in going:
                if fresh:
                    self.submit(operation)
                else:
                    # More may be committed than ``begin`` knows, so its record is read again.
                    self._pause(operation, seconds=0)
            self.wake()

        self._run(self._builds, operations[0], work)

    def finished(self, operation: Operation, outcome: Outcome) -> None:
        """Pass the agent's outcome of an operation to its flow.

        An operation whose action is unknown here is a newer conductor's. That one sends the
        command again once the lease has run out, and gets the outcome then.
        """
        flow = self._flows.get(operation.action)
        if flow is None:
            LOG.warning("The outcome of %s is left to a newer conductor.", operation.title)
            return
        self._run(self._others, operation, lambda: flow.finished(operation, outcome))

    def may_undo(self, operation_id: int, attempt: int, owner: str) -> bool:
        """Return whether the owner may undo what this attempt made; if so, renew its lease.

        It may not once another process has taken the operation over, or the operation has ended.
        Neither if its deadline passed while no conductor ran: then agents look before they undo.
        """
        seconds = self._options.lease_seconds

        def work(connection: Transaction) -> Operation | None:
            if not leases.confirm(connection, operation_id, attempt, owner, seconds):
                return None
            operation = ledger.get(connection, operation_id)
            if operation is None or overslept.woke(connection, self._name, operation):
                return None
            return operation

        operation = self._store.run(work)
        flow = None if operation is None else self._flows.get(operation.action)
        return flow is not None and operation is not None and flow.may_undo(operation)

    def end(self, operation: Operation, work: Callable[[], None]) -> None:
        """Run work that closes operations, this one among them."""
        self._run(self._others, operation, work)

    def _run(self, pool: ThreadPool, operation: Operation, work: Callable[[], None]) -> None:
        if not pool.submit(operation.id, lambda: self._guarded(operation, work)):
            LOG.info("Stopping: operation %s is left to another conductor.", operation.id)

    def _guarded(self, operation: Operation, work: Callable[[], None]) -> None:
        """Run the work; if it fails, postpone the operation."""
        operation.ctxt.update_store()
        try:
            work()
        except StaleTransition:
            self._step_back(operation)
        except Held as error:
            LOG.info("Operation %s waits: %s", operation.id, error.message)
            table.OPERATIONS_POSTPONED.count(operation.action, "held")
            self._pause(operation, error.message, error.seconds)
        except Unavailable as error:
            LOG.warning("Operation %s is postponed: %s", operation.id, error.message)
            table.OPERATIONS_POSTPONED.count(operation.action, "unavailable")
            self._pause(operation, error.message)
        except Exception:
            # Its lease runs out, and it is tried again; its deadline ends it.
            LOG.exception(
                "Operation %s failed unexpectedly; it is retried when its lease ends.",
                operation.id,
            )
            table.OPERATIONS_POSTPONED.count(operation.action, "error")
            self._pause(operation)
        if isinstance(operation.plan, MovePlan) and operation.plan.bulk is not None:
            self._wake_bulk_migrations(operation)

    def _wake_bulk_migrations(self, operation: Operation) -> None:
        """Have bulk migrations looked at if this one of theirs has ended."""
        try:
            if self._store.run(lambda c: bulk_migrations.wake_after(c, operation.id)):
                self.wake()
        except MicronovaError as error:
            LOG.warning(
                "Bulk migrations look later at operation %s: %s", operation.id, error.message
            )

    def _still_ours(self, operation: Operation) -> bool:
        """Return whether our lease lasts; checked only after a long wait for a thread."""
        half = self._options.lease_seconds / 2
        expires = operation.lease_expires_at
        if expires is not None and expires > clock.after(half):
            return True
        # An operation handed to an agent at its start is leased to that agent.
        owner = operation.lease_owner or self._name
        seconds = self._options.lease_seconds
        return self._store.run(
            lambda c: leases.confirm(c, operation.id, operation.attempt, owner, seconds)
        )

    def _step_back(self, operation: Operation) -> None:
        LOG.info("Operation %s was overtaken by another one.", operation.id)
        try:
            self._flows[operation.action].overtaken(operation)
        except Exception:
            LOG.exception(
                "Operation %s could not unwind; it is retried when its lease ends.", operation.id
            )

    def _pause(
        self,
        operation: Operation,
        why: str | None = None,
        seconds: float = UNAVAILABLE_PAUSE_SECONDS,
    ) -> None:
        try:
            self._store.run(lambda c: leases.pause(c, operation.id, self._name, seconds, why))
        except Exception:
            LOG.exception("Operation %s could not be postponed; its lease runs out.", operation.id)

    # --- what is due

    def look(self) -> None:
        """Take over what is due, as far as there are threads; other conductors take the rest."""
        self._sign()
        self._take_due(self._builds, {BUILD})
        # A newer conductor may have begun an action that is unknown here.
        self._take_due(self._others, self._flows.keys() - {BUILD})

    def _sign(self) -> None:
        """Store now and then that this conductor works, by the clock that deadlines are of."""
        now = clock.utcnow()
        since = None if self._signed_at is None else (now - self._signed_at).total_seconds()
        if since is None or not 0 <= since < pulse.SECONDS:
            self._store.run(self._write_sign)
            self._signed_at = now

    def _write_sign(self, connection: Transaction) -> None:
        if pulse.sign(connection, self._name) and self._signed_at is not None:
            # A gap while this conductor ran: an older copy may have replaced the database.
            restored.begin_to_compare(connection, self._name)
            if self._on_gap is not None:
                after_commit(connection, self._on_gap)

    def _take_due(self, pool: ThreadPool, actions: Collection[str]) -> None:
        room = pool.free()
        if not room:
            return
        held, seconds = pool.held(), self._options.lease_seconds
        due = self._store.run(lambda c: leases.due(c, self._name, seconds, room, actions, held))
        if len(due) == room:
            pool.want()
        for operation in due:
            self.submit(operation, fresh=False)

    def tidy(self) -> None:
        """End the quarantines of VMIDs that have lasted long enough."""
        seconds = self._options.vmid_quarantine_seconds
        self._store.run(lambda c: vmids.end_quarantines(c, seconds))
