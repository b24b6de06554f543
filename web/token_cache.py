"""An in-process cache of validated tokens, for deployments without memcached."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable


class TokenCache:
    """A cache of validated tokens with limits of size and time.

    It has the two methods of a memcached client that keystonemiddleware calls on the cache in
    the request's environ. keystonemiddleware's own in-process cache is deprecated, unbounded, and
    reads every entry on each request. Keys are hashes of tokens.
    """

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, tuple[float, bytes]] = OrderedDict()

    def get(self, key: str) -> bytes | None:
        """Return the value of `key` unless it has expired, or None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            if entry[0] <= self._clock():
                del self._entries[key]
                return None
            return entry[1]

    def set(self, key: str, value: bytes, time: int = 0) -> None:
        """Store `value` for `time` seconds; 0 or less stores nothing."""
        if time <= 0:
            return
        with self._lock:
            self._entries[key] = (self._clock() + time, value)
            self._entries.move_to_end(key)
            while len(self._entries) > self._limit:
                self._entries.popitem(last=False)
