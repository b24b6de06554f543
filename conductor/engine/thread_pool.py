"""Threads for one kind of work, and how much of it waits for them."""

from __future__ import annotations

import collections
import concurrent.futures
import threading
from collections.abc import Callable


class ThreadPool:
    """A pool that knows which operations it has in hand; ``room`` is told when there is again."""

    def __init__(self, name: str, threads: int, room: Callable[[], None]) -> None:
        self._threads, self._room = threads, room
        self._pool = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._held: collections.Counter[int] = collections.Counter()
        self._wanted = False

    def submit(self, operation_id: int, work: Callable[[], None]) -> bool:
        """Have work on an operation done; False when the lane is closed."""
        with self._lock:
            self._held[operation_id] += 1
        try:
            self._pool.submit(self._do, operation_id, work)
        except RuntimeError:
            self._drop(operation_id)
            return False
        return True

    def free(self) -> int:
        """How many operations more may be taken on: what waits for a thread shall be few."""
        with self._lock:
            return max(0, 2 * self._threads - self._held.total())

    def held(self) -> list[int]:
        """Operations that wait for a thread here, or have one."""
        with self._lock:
            return sorted(self._held)

    def want(self) -> None:
        """There is more to do: tell when half of the room is free again."""
        with self._lock:
            self._wanted = True

    def close(self) -> None:
        """Take nothing new, finish what is being done."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _do(self, operation_id: int, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            self._drop(operation_id)

    def _drop(self, operation_id: int) -> None:
        with self._lock:
            self._held[operation_id] -= 1
            if not self._held[operation_id]:
                del self._held[operation_id]
            tell = self._wanted and self._held.total() <= self._threads
            if tell:
                self._wanted = False
        if tell:
            self._room()
