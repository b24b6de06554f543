"""Causes of failure that ended: locks, and nodes that refused work.

Whoever waits for one of them need not wait out its pause. Seen in the bulk looks, so it costs no
call of its own.
"""

from __future__ import annotations

from collections.abc import Iterable


class Causes:
    """The causes of one cluster at the last look, and those that ended since the last report."""

    def __init__(self) -> None:
        self._locked: frozenset[int] = frozenset()
        self._usable: frozenset[str] | None = None
        self._unlocked: set[int] = set()
        self._eased: set[str] = set()

    def update(self, locked: Iterable[int], usable: Iterable[str]) -> bool:
        """Take a look's result; whether something ended.

        ``locked`` are VMs that carry a lock, ``usable`` nodes that take work.
        """
        locked, usable = frozenset(locked), frozenset(usable)
        self._unlocked = (self._unlocked | self._locked) - locked
        before = usable if self._usable is None else self._usable
        self._eased = (self._eased | (usable - before)) & usable
        self._locked, self._usable = locked, usable
        return bool(self._unlocked or self._eased)

    def unreachable(self) -> None:
        """No look was possible: no node takes work."""
        if self._usable is not None:
            self._usable = frozenset()

    def take(self) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Return unlocked (or gone) VMs and nodes that take work again, each once."""
        ended = tuple(sorted(self._unlocked)), tuple(sorted(self._eased))
        self._unlocked, self._eased = set(), set()
        return ended
