"""Simulated time: generators that sleep and take locks, driven by one thread with a timer heap.

A request or a task is a generator that yields effects (`Sleep`, `Acquire`). Nothing polls, and
tasks have no threads; a request whose generator never sleeps runs on its own thread.
Durations are simulated seconds; `Clock.speed` simulated seconds pass in one real second.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from simulator.errors import Interrupted, PveError

LOG = logging.getLogger(__name__)


class Sleep(NamedTuple):
    """Wait for some simulated seconds."""

    seconds: float


class Lock:
    """A lock with readers and writers, first come first served. Used under its cluster's mutex.

    A file lock is released when the process that holds it dies. One in the cluster file system
    has a `lease`: it outlives a killed holder by so many seconds.
    """

    def __init__(self, name: str, lease: float = 0.0) -> None:
        self.name = name
        self.lease = lease
        self.holders: dict[Process, bool] = {}
        self.waiters: deque[tuple[Process, int, bool]] = deque()

    def free_for(self, shared: bool) -> bool:
        """Return whether one more holder of that kind is compatible with the present ones."""
        return not self.holders or (shared and all(self.holders.values()))


class Acquire(NamedTuple):
    """Take a lock, waiting for a limited simulated time; the answer is True or False."""

    lock: Lock
    timeout: float
    shared: bool = False


class Release(NamedTuple):
    """Release a lock."""

    lock: Lock


class TimedOut(NamedTuple):
    """The heap's entry for a lock whose wait ran out."""

    lock: Lock


Effect = Sleep | Acquire | Release
Work = Generator[Effect, Any, Any]


class Clock:
    """Simulated seconds since the start of the process, at a speed that may be changed."""

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self._real = time.monotonic()
        self._simulated = 0.0

    def now(self) -> float:
        """Return the simulated seconds since the start."""
        return self._simulated + (time.monotonic() - self._real) * self.speed

    def set_speed(self, speed: float) -> None:
        """Change the speed from now on."""
        self._simulated, self._real = self.now(), time.monotonic()
        self.speed = speed


@dataclass(eq=False)
class Process:
    """A running generator: the locks it holds and whether it ended, with result or error."""

    work: Work
    turn: Callable[[], AbstractContextManager[object]]
    on_end: Callable[[Process], None] | None = None
    holds: list[Lock] = field(default_factory=list)
    waiting: int = 0
    done: bool = False
    killed: bool = False
    result: Any = None
    error: BaseException | None = None
    finished: threading.Event = field(default_factory=threading.Event)


class Engine:
    """The timer heap and its thread."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._heap: list[tuple[float, int, Process, int, Any]] = []
        self._order = itertools.count()
        self._ready = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        """Start the timer thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the timer thread; running work is not continued."""
        with self._ready:
            self._stopping = True
            self._ready.notify()
        self._thread.join(timeout=5)

    def set_speed(self, speed: float) -> None:
        """Change the speed, also for what sleeps now."""
        with self._ready:
            self.clock.set_speed(speed)
            self._ready.notify()

    def spawn(self, process: Process) -> Process:
        """Queue the first step of a process for the timer thread."""
        self._wake(process, process.waiting, None, 0.0)
        return process

    def run(self, process: Process) -> Any:
        """Run a process on this thread and return its result; sleeps release the mutex."""
        with process.turn():
            self._step(process, None)
        process.finished.wait()
        if process.error is not None:
            raise process.error
        return process.result

    def interrupt(self, process: Process) -> None:
        """Raise `Interrupted` in the work, as SIGTERM does; it may clean up."""
        self.throw(process, Interrupted())

    def throw(self, process: Process, error: Exception) -> None:
        """Raise an error in the work; needs the mutex."""
        if not process.done:
            self._step(process, None, error)

    def kill(self, process: Process) -> None:
        """End the work as SIGKILL does: no clean-up, only file locks are released."""
        if not process.done:
            process.killed = True
            process.work.close()
            self._end(process, None, PveError("unexpected status"))

    def let_go(self, process: Process) -> None:
        """End a process that only holds locks; all are released, leases or not."""
        if not process.done:
            process.work.close()
            self._end(process, None, None)

    def _run(self) -> None:
        while True:
            with self._ready:
                if self._stopping:
                    return
                now = self.clock.now()
                if not self._heap or self._heap[0][0] > now:
                    delay = (self._heap[0][0] - now) / self.clock.speed if self._heap else None
                    self._ready.wait(delay)
                    continue
                _due, _order, process, ticket, value = heapq.heappop(self._heap)
            try:
                with process.turn():
                    if not process.done and process.waiting == ticket:
                        self._step(process, value)
            except Exception:
                # A cluster that can't save its state must not stop the others.
                LOG.exception("a slice of work could not be finished")

    def _wake(self, process: Process, ticket: int, value: object, delay: float) -> None:
        with self._ready:
            entry = (self.clock.now() + delay, next(self._order), process, ticket, value)
            heapq.heappush(self._heap, entry)
            if self._heap[0] is entry:
                self._ready.notify()

    def _step(self, process: Process, value: object, thrown: Exception | None = None) -> None:
        process.waiting += 1
        if isinstance(value, TimedOut):
            self._grant(value.lock)
            value = False
        try:
            while True:
                if thrown is not None:
                    effect = process.work.throw(thrown)
                    thrown = None
                else:
                    effect = process.work.send(value)
                value = None
                if isinstance(effect, Release):
                    self._release(process, effect.lock)
                elif isinstance(effect, Sleep):
                    if effect.seconds > 0:
                        self._wake(process, process.waiting, None, effect.seconds)
                        return
                elif self._acquire(process, effect):
                    value = True
                else:
                    return
        except StopIteration as stop:
            self._end(process, stop.value, None)
        except Exception as error:  # noqa: BLE001 - kept in the process, raised by run()
            self._end(process, None, error)

    def _acquire(self, process: Process, effect: Acquire) -> bool:
        lock = effect.lock
        self._forget_stale(lock)
        if not lock.waiters and lock.free_for(effect.shared):
            lock.holders[process] = effect.shared
            process.holds.append(lock)
            return True
        lock.waiters.append((process, process.waiting, effect.shared))
        self._wake(process, process.waiting, TimedOut(lock), effect.timeout)
        return False

    def _release(self, process: Process, lock: Lock) -> None:
        if lock.holders.pop(process, None) is None:
            return
        process.holds.remove(lock)
        self._grant(lock)

    @staticmethod
    def _forget_stale(lock: Lock) -> None:
        while lock.waiters:
            waiter, ticket, _shared = lock.waiters[0]
            if not waiter.done and waiter.waiting == ticket:
                return
            lock.waiters.popleft()

    def _grant(self, lock: Lock) -> None:
        self._forget_stale(lock)
        while lock.waiters and lock.free_for(lock.waiters[0][2]):
            waiter, _ticket, shared = lock.waiters.popleft()
            lock.holders[waiter] = shared
            waiter.holds.append(lock)
            waiter.waiting += 1
            self._wake(waiter, waiter.waiting, True, 0.0)
            self._forget_stale(lock)

    def _bequeath(self, process: Process, lock: Lock) -> None:
        """Keep a dead holder's lock until its lease is over."""

        def ghost() -> Work:
            yield Sleep(lock.lease)

        heir = Process(ghost(), process.turn)
        lock.holders[heir] = lock.holders.pop(process)
        process.holds.remove(lock)
        heir.holds.append(lock)
        self.spawn(heir)

    def _end(self, process: Process, result: object, error: BaseException | None) -> None:
        process.done, process.result, process.error = True, result, error
        for lock in list(process.holds):
            if process.killed and lock.lease:
                self._bequeath(process, lock)
            else:
                self._release(process, lock)
        if process.on_end is not None:
            process.on_end(process)
        process.finished.set()
