"""Token buckets that the processes forked after their making share, in a table of fixed size.

A bucket is found by a digest of its key. Only so many are held: a new one takes the place of the
one unused for longest among eight, so that more keys than places may get more than their limits.
Locks are the kernel's on the table's file: they end with a process that dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import mmap
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from common.errors import Invalid

PLACES = 8192
"""Buckets in a table, 32 bytes each."""

_WAYS = 8
#: seconds that floats round away, and nobody waits for
_ROUNDED = 1e-9
_PLACE = struct.Struct("=16sdd")


@dataclass(frozen=True)
class Rate:
    """How often something may be done."""

    per_second: float
    """In the long run."""
    burst: int
    """At once."""

    @classmethod
    def parse(cls, text: str) -> Rate:
        """Return the rate that `SECOND/BURST` says, such as `10/50`. Raises Invalid."""
        often, slash, burst = text.strip().partition("/")
        try:
            found = cls(float(often), int(burst))
        except ValueError:
            found = None
        if not slash or found is None or not 1e-6 <= found.per_second <= 1e6:
            raise Invalid(f"{text} is no rate: requests a second and at once, such as 10/50")
        if not 1 <= found.burst <= 1_000_000:
            raise Invalid(f"{text}: between 1 and 1000000 at once")
        return found


class Buckets:
    """The table."""

    def __init__(self, places: int = PLACES, now: Callable[[], float] = time.monotonic) -> None:
        """``now`` is the same in all processes, as the kernel's monotonic clock is."""
        self._groups, self._now = max(1, places // _WAYS), now
        self._file = os.memfd_create("micronova-rate-limits", os.MFD_CLOEXEC)
        size = self._groups * _WAYS * _PLACE.size
        os.ftruncate(self._file, size)
        self._memory = mmap.mmap(self._file, size)
        self._lock = threading.Lock()

    def take(self, wanted: Sequence[tuple[str, Rate]]) -> float:
        """Take one from each bucket, or none; return 0.0, or seconds until all have one."""
        with self._locked():
            now, wait = self._now(), 0.0
            found: list[tuple[int, bytes, float]] = []
            for key, rate in wanted:
                digest = hashlib.blake2b(key.encode(), digest_size=16).digest()
                place, left = self._find(digest, rate, now, {at for at, _, _ in found})
                found.append((place, digest, left))
                wait = max(wait, (1.0 - left) / rate.per_second)
            taken = 0.0 if wait > _ROUNDED else 1.0
            for place, digest, left in found:
                # Stored after a refusal, too: it is in use.
                _PLACE.pack_into(self._memory, place, digest, max(0.0, left - taken), now)
            return 0.0 if taken else wait

    def _find(self, digest: bytes, rate: Rate, now: float, kept: set[int]) -> tuple[int, float]:
        """Return the place of a bucket, or the one to take, and what is in it now."""
        group = int.from_bytes(digest[:8], "big") % self._groups
        first = group * _WAYS * _PLACE.size
        oldest, oldest_at = first, float("inf")
        for place in range(first, first + _WAYS * _PLACE.size, _PLACE.size):
            whose, left, at = _PLACE.unpack_from(self._memory, place)
            if whose == digest:
                grown = left + max(0.0, now - at) * rate.per_second
                return place, min(float(rate.burst), grown)
            if at < oldest_at and place not in kept:
                oldest, oldest_at = place, at
        return oldest, float(rate.burst)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the table: against this process's threads, and against other processes."""
        with self._lock:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)
