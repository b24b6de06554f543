"""Periodic tasks: a name, a period, a function, and whether only one process runs it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from common.log import logger
from common.metrics import loops
from conductor.store.ledger import process_leases
from conductor.store.transactions import Store

LOG = logger(__name__)

LEASE_SECONDS = 30.0
RENEW_SECONDS = 10.0
#: how long the end waits for a task apart, which may wait for an agent
APART_SECONDS = 5.0


@dataclass(frozen=True)
class Periodic:
    """One periodic task."""

    name: str
    seconds: float
    work: Callable[[], float | None] | Callable[[], None]
    """Returns the seconds until it runs again; None: its period."""
    alone: bool = False
    """Whether only one process at a time runs it: the one with its lease."""
    apart: bool = False
    """Whether it has a thread of its own: an agent that stands still answers it after minutes, in
    which all others are due."""


@contextlib.contextmanager
def only_one(
    store: Store, name: str, owner: str, renew_seconds: float = RENEW_SECONDS
) -> Iterator[bool]:
    """Yield whether the owner has the lease of this name; it is renewed until the block ends."""
    over = threading.Event()

    def take() -> bool:
        return store.run(lambda c: process_leases.take(c, name, owner, LEASE_SECONDS))

    def renew() -> None:
        while not over.wait(renew_seconds):
            try:
                kept = take()
            except Exception:
                # The next try may succeed; if not, the lease expires and another process takes it.
                LOG.exception("Lease %s was not renewed; trying again.", name)
                continue
            if not kept:
                LOG.warning("Another conductor has the lease %s by now.", name)
                return

    if not take():
        yield False
        return
    keeper = threading.Thread(target=renew, name=f"{name}-lease", daemon=True)
    keeper.start()
    try:
        yield True
    finally:
        over.set()
        keeper.join()
        store.run(lambda c: process_leases.drop(c, name, owner))


class Periodics:
    """Runs a table of periodic tasks in one thread, and those apart in one each.

    Each may be run earlier on request.
    """

    def __init__(
        self, name: str, store: Store, owner: str, apart_seconds: float = APART_SECONDS
    ) -> None:
        """``apart_seconds``: how long the end waits for a task apart."""
        self._store, self._owner, self._apart_seconds = store, owner, apart_seconds
        self._tasks: dict[str, Periodic] = {}
        self._due: dict[str, float] = {}
        self._apart: dict[str, Periodics] = {}
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def add(self, task: Periodic, *, after: float = 0.0) -> None:
        """Add a task, due after so many seconds for the first time; before `start`, if apart."""
        if task.apart:
            own = self._apart[task.name] = Periodics(task.name, self._store, self._owner)
            own.add(replace(task, apart=False), after=after)
            return
        with self._changed:
            self._tasks[task.name] = task
            self._due[task.name] = time.monotonic() + after
            self._changed.notify_all()

    @property
    def tasks(self) -> tuple[Periodic, ...]:
        """Return the whole table."""
        with self._changed:
            mine = tuple(self._tasks.values())
        return (*mine, *(task for one in self._apart.values() for task in one.tasks))

    @property
    def alive(self) -> bool:
        """Whether all threads run."""
        return self._thread.is_alive() and all(one.alive for one in self._apart.values())

    def start(self) -> None:
        """Start; tasks that are due run at once."""
        self._thread.start()
        for one in self._apart.values():
            one.start()

    def stop(self, timeout: float | None = None) -> None:
        """Start no further task, and wait for the running one; not for long if it is apart."""
        for each in (self, *self._apart.values()):
            with each._changed:
                each._stopped = True
                each._changed.notify_all()
        for each in (self, *self._apart.values()):
            if each._thread.is_alive():
                each._thread.join(timeout if each is self else self._apart_seconds)

    def wake(self, name: str) -> None:
        """Have a task run now; if it runs, once more after it."""
        if name in self._apart:
            self._apart[name].wake(name)
            return
        with self._changed:
            # An overdue task is not moved back in the order.
            self._due[name] = min(self._due[name], time.monotonic())
            self._changed.notify_all()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            try:
                again = self._do(task)
            except Exception:
                LOG.exception("Periodic task %s failed; it is tried again.", task.name)
                again = None
                loops.failed(task.name)
            else:
                loops.done(task.name, task.seconds if again is None else again)
            with self._changed:
                # Unless ``wake`` was called while it ran.
                due = time.monotonic() + (task.seconds if again is None else again)
                if self._due[task.name] == float("inf"):
                    self._due[task.name] = due

    def _do(self, task: Periodic) -> float | None:
        if not task.alone:
            return task.work()
        with only_one(self._store, task.name, self._owner) as ours:
            return task.work() if ours else None

    def _next(self) -> Periodic | None:
        """Return the task that is due first, once it is; None when stopped."""
        with self._changed:
            while not self._stopped:
                name = min(self._due, key=self._due.__getitem__, default=None)
                wait = None if name is None else self._due[name] - time.monotonic()
                if name is not None and wait is not None and wait <= 0:
                    self._due[name] = float("inf")
                    return self._tasks[name]
                self._changed.wait(wait)
        return None
