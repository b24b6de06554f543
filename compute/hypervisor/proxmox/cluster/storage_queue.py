"""A fair queue per storage lock, whose width adapts.

Proxmox VE gives up on a storage lock after ten seconds, so operations that would only wait there
and fail wait here: per cluster for a shared storage, per node for a local one. Operations hold the
lock only for a part of their time, which differs by storage; so the width follows measurements. It
grows while parallel operations slow each other little, shrinks when the wait takes a good part of
the ten seconds, and is halved when a lock was not free in time.
"""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from common.messages.queues import STORAGE, Queue
from common.metrics import table
from common.metrics.instruments import Labels, Samples
from compute.hypervisor.port import Work
from compute.queues import Entry, counted

_CHECK_SECONDS = 0.5

#: how long Proxmox VE waits for a storage lock
LOCK_WAIT_SECONDS = 10.0
#: shares of it that waiting may cost; below the first the width grows
ROOM, ENOUGH = 0.15, 0.3
#: after this time the best duration is forgotten: a storage may have become slower for good
FADE = 1.002

Key = tuple[str | None, str]
"""(node, storage); node None for a shared storage."""


@dataclass
class Width:
    """How many operations run at a time, learnt from their durations. Pure.

    It changes by rounds: as many results as the width, of operations that all began in the round.
    """

    limit: int
    most: int
    lock_wait_seconds: float = LOCK_WAIT_SECONDS
    round: int = 0
    _best: dict[str, float] = field(default_factory=dict)
    _costs: list[float] = field(default_factory=list)
    _deaf: int = 0
    """Refusals of operations that began before the last halving; they don't count again."""

    def ended(self, began_in: int, kind: str, seconds: float, *, crowded: bool) -> None:
        """Record an operation of that round that ended well; ``crowded``: others wait."""
        best = min(seconds, self._best.get(kind, seconds) * FADE)
        self._best[kind] = best
        if began_in != self.round:
            return
        self._deaf = 0
        cost = (seconds - best) / self.lock_wait_seconds
        self._costs.append(cost)
        if cost > ENOUGH:
            self._become(int(self.limit * ENOUGH / cost))
        elif len(self._costs) >= self.limit:
            cheap = max(self._costs) < ROOM
            self._become(self.limit * 2 if cheap and crowded else self.limit)

    def refused(self) -> None:
        """Record that the lock was not obtained in time."""
        if self._deaf > 0:
            self._deaf -= 1
            return
        self._deaf = self.limit - 1
        self._become(self.limit // 2)

    def _become(self, limit: int) -> None:
        bounded = max(1, min(limit, self.most))
        if bounded != self.limit:
            self.limit = bounded
            self.round += 1
        self._costs.clear()


@dataclass(eq=False)
class _Turn:
    """One operation, which waits for a slot or holds one."""

    node: str
    came_at: float
    given: threading.Event = field(default_factory=threading.Event)


@dataclass
class _Line:
    width: Width
    running: set[_Turn] = field(default_factory=set)
    waiting: collections.deque[_Turn] = field(default_factory=collections.deque)

    def queues(self, storage: str, now: float, *, shared: bool) -> dict[str, Queue]:
        """Return the storage's queue by node; of nodes that use it now."""
        empty = Queue(STORAGE, storage, self.width.limit, shared)
        entries = [Entry(turn.node, None) for turn in self.running]
        entries += [Entry(turn.node, now - turn.came_at) for turn in self.waiting]
        return counted(entries, empty)


class StorageQueue:
    """Slots of all storages of one cluster; first come, first served.

    ``local_slots`` and ``shared_slots`` are the first widths, ``most_slots`` the largest.
    """

    def __init__(
        self,
        local_slots: int,
        shared_slots: int,
        most_slots: int = 0,
        timer: Callable[[], float] = time.monotonic,
        cluster: str = "",
    ) -> None:
        self._cluster = cluster
        self._local, self._shared, self._most = local_slots, shared_slots, most_slots
        self._timer = timer
        self._lock = threading.Lock()
        self._lines: dict[Key, _Line] = {}
        table.STORAGE_QUEUE_WIDTH.watch(self._sample_width)
        table.STORAGE_QUEUE_USED.watch(self._sample_used)
        table.STORAGE_QUEUE_WAITING.watch(self._sample_waiting)

    @contextlib.contextmanager
    def slot(self, work: Work, key: Key, kind: str = "") -> Iterator[None]:
        """Hold a slot. While waiting, raises what ``work.check`` raises.

        ``kind`` groups operations that take equally long when nothing else runs.
        """
        turn = _Turn(key[0] or work.command.placed.node, self._timer())
        with table.STORAGE_QUEUE_WAIT_SECONDS.timed(self._cluster, key[1]):
            began_in = self._enter(work, key, turn)
        began = self._timer()
        try:
            yield
        except BaseException:
            self._leave(key, turn)
            raise
        self._leave(key, turn, (began_in, kind, self._timer() - began))

    def refused(self, key: Key) -> None:
        """Record that Proxmox VE gave up on the storage's lock."""
        table.STORAGE_QUEUE_REFUSED.count(self._cluster, key[1])
        with self._lock:
            self._line(key).width.refused()

    def limit(self, key: Key) -> int:
        """Return the present number of slots."""
        with self._lock:
            return self._line(key).width.limit

    def queues(self) -> dict[str, tuple[Queue, ...]]:
        """Return the queues that each node uses now, by the storages' names.

        A shared storage counts on the node of the operation's VM.
        """
        found: dict[str, tuple[Queue, ...]] = {}
        now = self._timer()
        with self._lock:
            for (node, storage), line in sorted(self._lines.items(), key=lambda one: one[0][1]):
                used = line.queues(storage, now, shared=node is None)
                for user, queue in used.items():
                    found[user] = (*found.get(user, ()), queue)
        return found

    def _sample_width(self) -> Samples:
        return self._sample(lambda line: line.width.limit)

    def _sample_used(self) -> Samples:
        return self._sample(lambda line: len(line.running))

    def _sample_waiting(self) -> Samples:
        return self._sample(lambda line: len(line.waiting))

    def _sample(self, value: Callable[[_Line], int]) -> dict[Labels, float]:
        with self._lock:
            return {
                (self._cluster, node or "", storage): value(line)
                for (node, storage), line in self._lines.items()
            }

    def _line(self, key: Key) -> _Line:
        if key not in self._lines:
            first = self._shared if key[0] is None else self._local
            self._lines[key] = _Line(Width(first, max(first, self._most)))
        return self._lines[key]

    def _enter(self, work: Work, key: Key, turn: _Turn) -> int:
        """Wait for a slot; return the round in which it was given."""
        with self._lock:
            line = self._line(key)
            if len(line.running) < line.width.limit and not line.waiting:
                line.running.add(turn)
                return line.width.round
            line.waiting.append(turn)
        try:
            while not turn.given.wait(_CHECK_SECONDS):
                work.check()
        except BaseException:
            self._give_up(key, turn)
            raise
        return line.width.round

    def _give_up(self, key: Key, turn: _Turn) -> None:
        with self._lock:
            line = self._lines[key]
            if turn in line.waiting:
                line.waiting.remove(turn)
                return
        # The slot was given while giving up.
        self._leave(key, turn)

    def _leave(self, key: Key, turn: _Turn, ended: tuple[int, str, float] | None = None) -> None:
        with self._lock:
            line = self._lines[key]
            line.running.remove(turn)
            if ended is not None:
                line.width.ended(*ended, crowded=bool(line.waiting))
            while line.waiting and len(line.running) < line.width.limit:
                following = line.waiting.popleft()
                line.running.add(following)
                following.given.set()
