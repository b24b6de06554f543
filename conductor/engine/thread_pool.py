"""Threads for one kind of work, and how much of it waits for them."""

from __future__ import annotations

import collections
import concurrent.futures
import threading
import time
from collections.abc import Callable

from common.metrics import table
from common.metrics.instruments import Samples


class ThreadPool:
    """A pool that knows its operations; ``room`` is called when one of them may be taken again."""

    def __init__(self, name: str, threads: int, room: Callable[[], None]) -> None:
        self._name = name
        self._threads, self._room = threads, room
        self._pool = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._held: collections.Counter[int] = collections.Counter()
        self._wanted = False
        self._thread = threading.local()
        table.POOL_HELD.watch(self._sample_held)
        table.POOL_THREADS.watch(self._sample_threads)

    def submit(self, operation_id: int, work: Callable[[], None]) -> bool:
        """Run work on an operation; return False when the pool is closed."""
        with self._lock:
            self._held[operation_id] += 1
        try:
            self._pool.submit(self._do, operation_id, work, time.perf_counter())
        except RuntimeError:
            self._drop(operation_id)
            return False
        return True

    def free(self) -> int:
        """Return how many more operations it takes: only a few may wait for a thread."""
        with self._lock:
            return max(0, 2 * self._threads - self._held.total())

    def held(self) -> list[int]:
        """Return the operations that wait for a thread here, or have one."""
        with self._lock:
            return sorted(self._held)

    def want(self) -> None:
        """Call ``room`` when half of the room is free again."""
        with self._lock:
            self._wanted = True

    def defer(self) -> bool:
        """Call ``room`` once this thread's work is done, as its operation is held until then.

        Return False where this is no thread of the pool.
        """
        if not getattr(self._thread, "works", False):
            return False
        self._thread.deferred = True
        return True

    def close(self) -> None:
        """Take nothing new, finish what is running."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _sample_held(self) -> Samples:
        with self._lock:
            return {(self._name,): self._held.total()}

    def _sample_threads(self) -> Samples:
        return {(self._name,): self._threads}

    def _do(self, operation_id: int, work: Callable[[], None], since: float) -> None:
        table.POOL_WAIT_SECONDS.observe(time.perf_counter() - since, self._name)
        self._thread.works, self._thread.deferred = True, False
        try:
            work()
        finally:
            self._thread.works = False
            self._drop(operation_id)
            if self._thread.deferred:
                self._room()

    def _drop(self, operation_id: int) -> None:
        with self._lock:
            self._held[operation_id] -= 1
            if not self._held[operation_id]:
                del self._held[operation_id]
            notifies = self._wanted and self._held.total() <= self._threads
            if notifies:
                self._wanted = False
        if notifies:
            self._room()
