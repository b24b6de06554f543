"""Admission to storages: a fair queue per storage lock.

Proxmox VE gives up on a storage lock after ten seconds, so what would only queue there and fail
queues here: per cluster for a shared storage, per node for a local one.
"""

from __future__ import annotations

import collections
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from compute.hypervisor.port import Work

_CHECK_SECONDS = 0.5

Key = tuple[str | None, str]
"""(node, storage); node None for a shared storage."""


@dataclass
class _Line:
    used: int = 0
    waiting: collections.deque[threading.Event] = field(default_factory=collections.deque)


class Admission:
    """Slots of all storages of one cluster; first come, first served."""

    def __init__(self, local_slots: int, shared_slots: int) -> None:
        self._local, self._shared = local_slots, shared_slots
        self._lock = threading.Lock()
        self._lines: dict[Key, _Line] = {}

    @contextlib.contextmanager
    def slot(self, work: Work, key: Key) -> Iterator[None]:
        """Hold a slot. While waiting, raises what ``work.check`` raises."""
        self._enter(work, key)
        try:
            yield
        finally:
            self._leave(key)

    def _enter(self, work: Work, key: Key) -> None:
        turn = threading.Event()
        width = self._shared if key[0] is None else self._local
        with self._lock:
            line = self._lines.setdefault(key, _Line())
            if line.used < width and not line.waiting:
                line.used += 1
                return
            line.waiting.append(turn)
        try:
            while not turn.wait(_CHECK_SECONDS):
                work.check()
        except BaseException:
            self._give_up(key, turn)
            raise

    def _give_up(self, key: Key, turn: threading.Event) -> None:
        with self._lock:
            line = self._lines[key]
            if turn in line.waiting:
                line.waiting.remove(turn)
                return
        # The turn came while giving up.
        self._leave(key)

    def _leave(self, key: Key) -> None:
        with self._lock:
            line = self._lines[key]
            if line.waiting:
                line.waiting.popleft().set()
            else:
                line.used -= 1
