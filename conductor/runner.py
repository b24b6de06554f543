"""Works operations off: new ones at once, abandoned and postponed ones when they are due."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from oslo_config import cfg

from common import clock
from common.errors import StaleTransition, Unavailable
from common.log import logger
from common.messages import Outcome
from conductor import leases
from conductor.store.operations import Operation
from conductor.store.transactions import Store

LOG = logger(__name__)

#: seconds until an operation is looked at again when something it needs didn't answer
UNAVAILABLE_PAUSE_SECONDS = 5.0


class Flow(Protocol):
    """How one kind of operation goes on."""

    def resume(self, operation: Operation, *, fresh: bool) -> None:
        """Go on from what the record says; ``fresh``: nobody has worked on it before."""

    def finished(self, operation: Operation, outcome: Outcome) -> None:
        """The agent's last word on it."""

    def overtaken(self, operation: Operation) -> None:
        """Another operation has taken the server meanwhile."""


class Runner:
    """A pool of threads, and one that looks for what is due."""

    def __init__(
        self, conf: cfg.ConfigOpts, store: Store, name: str, flows: Mapping[str, Flow]
    ) -> None:
        self._options = conf.conductor
        self._store = store
        self._name = name
        self._flows = flows
        self._pool = concurrent.futures.ThreadPoolExecutor(
            self._options.workers, thread_name_prefix="operation"
        )
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._scanner = threading.Thread(target=self._scan, name="scanner", daemon=True)

    def start(self) -> None:
        """Begin to look for what is due; the first look is at once."""
        self._scanner.start()

    def stop(self) -> None:
        """Take nothing new, finish what is being done."""
        self._stopped.set()
        self._wake.set()
        self._scanner.join()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def wake(self) -> None:
        """Something is due now."""
        self._wake.set()

    def submit(self, operation: Operation, *, fresh: bool = True) -> None:
        """Work on an operation whose lease is ours."""
        flow = self._flows[operation.action]

        def work() -> None:
            if self._still_ours(operation):
                flow.resume(operation, fresh=fresh)

        self._run(operation, work)

    def finished(self, operation: Operation, outcome: Outcome) -> None:
        """Hand the agent's last word on an operation to its flow."""
        flow = self._flows[operation.action]
        self._run(operation, lambda: flow.finished(operation, outcome))

    def _run(self, operation: Operation, work: Callable[[], None]) -> None:
        try:
            self._pool.submit(self._guarded, operation, work)
        except RuntimeError:
            LOG.info("Stopping: operation %s is left to the next one.", operation.id)

    def _guarded(self, operation: Operation, work: Callable[[], None]) -> None:
        """Whatever happens to the work, the operation is not lost."""
        operation.ctxt.update_store()
        try:
            work()
        except StaleTransition:
            self._step_back(operation)
        except Unavailable as error:
            LOG.warning("Operation %s pauses: %s", operation.id, error.message)
            self._pause(operation)
        except Exception:
            # Its lease runs out, and it is looked at again; its deadline ends it.
            LOG.exception("Operation %s stumbled.", operation.id)
            self._pause(operation)

    def _still_ours(self, operation: Operation) -> bool:
        """Whether our lease lasts; asked only when it has waited long for a thread."""
        half = self._options.lease_seconds / 2
        expires = operation.lease_expires_at
        if expires is not None and expires > clock.after(half):
            return True
        return self._store.run(
            lambda c: leases.confirm(c, operation, self._name, self._options.lease_seconds)
        )

    def _step_back(self, operation: Operation) -> None:
        LOG.info("Operation %s lost its server to another one.", operation.id)
        try:
            self._flows[operation.action].overtaken(operation)
        except Exception:
            LOG.exception(
                "Operation %s could not step back; again when its lease ends.", operation.id
            )

    def _pause(self, operation: Operation) -> None:
        self._store.run(lambda c: leases.postpone(c, operation.id, UNAVAILABLE_PAUSE_SECONDS))

    def _scan(self) -> None:
        while not self._stopped.is_set():
            self._wake.clear()
            try:
                taken = self._take_due()
            except Exception:
                LOG.exception("The database can't be asked for due operations.")
                taken = 0
            if taken < self._options.workers:
                self._wake.wait(self._options.scan_seconds)

    def _take_due(self) -> int:
        due = self._store.run(
            lambda c: leases.due(c, self._name, self._options.lease_seconds, self._options.workers)
        )
        for operation in due:
            LOG.info("Taking over operation %s (%s).", operation.id, operation.action)
            self.submit(operation, fresh=False)
        return len(due)
