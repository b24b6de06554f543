"""Causes of failure that have ended: released locks, and nodes that work again.

Operations that wait for one of them are retried at once. Seen in refreshes, so it costs no further
call.
"""

from __future__ import annotations

from collections.abc import Iterable


class Causes:
    """The causes in one cluster at the last refresh, and those ended since the last report."""

    def __init__(self) -> None:
        self._locked: frozenset[int] = frozenset()
        self._usable: frozenset[str] | None = None
        self._unlocked: set[int] = set()
        self._eased: set[str] = set()

    def update(self, locked: Iterable[int], usable: Iterable[str]) -> bool:
        """Take over a refresh; return whether a cause ended.

        ``locked`` are VMs that carry a lock, ``usable`` nodes that accept work.
        """
        locked, usable = frozenset(locked), frozenset(usable)
        self._unlocked = (self._unlocked | self._locked) - locked
        before = usable if self._usable is None else self._usable
        self._eased = (self._eased | (usable - before)) & usable
        self._locked, self._usable = locked, usable
        return bool(self._unlocked or self._eased)

    def unreachable(self) -> None:
        """Record that the cluster didn't answer: no node accepts work."""
        if self._usable is not None:
            self._usable = frozenset()

    def take(self) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Return unlocked (or deleted) VMs and nodes that work again, each once."""
        ended = tuple(sorted(self._unlocked)), tuple(sorted(self._eased))
        self._unlocked, self._eased = set(), set()
        return ended
