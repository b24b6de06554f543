"""News of room on hosts, for those who wait for it in this conductor."""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping

#: notes of room that was taken that a conductor remembers between two looks
_TAKEN_MOST = 10_000


class RoomNews:
    """Who is to look when room may have become free; silent while nobody waits."""

    def __init__(self) -> None:
        self.awaited = False
        """Whether somebody waits, as far as this conductor knows."""
        self.moves = False
        """Whether moves of drains wait, as far as this conductor knows."""
        self.keeps = False
        """Whether hosts are kept for somebody, as far as this conductor knows."""
        self._taken: collections.deque[str] = collections.deque(maxlen=_TAKEN_MOST)
        self._changed = False
        self._look: Callable[[], None] | None = None

    def listen(self, look: Callable[[], None]) -> None:
        """Have ``look`` called when there is news."""
        self._look = look

    def freed(self) -> None:
        """Note that a host may have more room than before."""
        if (self.awaited or self.moves) and self._look is not None:
            self._look()

    def changed(self) -> None:
        """Note that hosts may be judged otherwise than before: aggregates, services, groups."""
        self._changed = True
        self.freed()

    def taken(self, host: str) -> None:
        """Note that a server that did not wait has room on a host, by the UUID of that."""
        if self.awaited:
            self._taken.append(host)

    def take_taken(self) -> Mapping[str, int]:
        """Return how often each host was noted since the last call of this."""
        found: collections.Counter[str] = collections.Counter()
        while self._taken:
            found[self._taken.popleft()] += 1
        return found

    def take_changed(self) -> bool:
        """Return whether ``changed`` was called since the last call of this."""
        changed, self._changed = self._changed, False
        return changed
