"""News of room on hosts, for those who wait for it in this conductor."""

from __future__ import annotations

from collections.abc import Callable


class RoomNews:
    """Who is to look when room may have become free; silent while nobody waits."""

    def __init__(self) -> None:
        self.awaited = False
        """Whether somebody waits, as far as this conductor knows."""
        self._changed = False
        self._look: Callable[[], None] | None = None

    def listen(self, look: Callable[[], None]) -> None:
        """Have ``look`` called when there is news."""
        self._look = look

    def freed(self) -> None:
        """Note that a host may have more room than before."""
        if self.awaited and self._look is not None:
            self._look()

    def changed(self) -> None:
        """Note that hosts may be judged otherwise than before: aggregates, services, groups."""
        self._changed = True
        self.freed()

    def take_changed(self) -> bool:
        """Return whether ``changed`` was called since the last call of this."""
        changed, self._changed = self._changed, False
        return changed
