"""In-process caches of what belongs to a token, bounded in size and time."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

V = TypeVar("V")


class TokenCache(Generic[V]):
    """A cache with limits of size and time.

    For validated tokens, where there is no memcached, it has the two methods of a memcached
    client that keystonemiddleware calls on the cache in the request's environ.
    keystonemiddleware's own in-process cache is deprecated, unbounded, and reads every entry on
    each request. Keys are hashes of tokens.
    """

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, tuple[float, V]] = OrderedDict()

    def get(self, key: str) -> V | None:
        """Return the value of `key` unless it has expired, or None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            if entry[0] <= self._clock():
                del self._entries[key]
                return None
            return entry[1]

    def set(self, key: str, value: V, time: float = 0) -> None:
        """Store `value` for `time` seconds; 0 or less stores nothing."""
        if time <= 0:
            return
        with self._lock:
            self._entries[key] = (self._clock() + time, value)
            self._entries.move_to_end(key)
            while len(self._entries) > self._limit:
                self._entries.popitem(last=False)
