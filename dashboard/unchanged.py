"""What browsers of one project need not ask for again: that nothing has changed since a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import NamedTuple

#: how old an answer may be: with a page's interval, others' changes are seen within three seconds
SECONDS = 0.5
#: an answer so old is still where the next question begins, so that it holds for others as well
_BEGINS_SECONDS = 60.0
#: projects
_MOST = 10_000


class _Known(NamedTuple):
    since: str
    """Nothing has changed since this moment, ISO 8601 in UTC."""
    at: float


class Unchanged:
    """Asks once for all browsers that show the same servers. One for a process."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._known: dict[Hashable, _Known] = {}

    def is_changed(self, whose: Hashable, since: str, ask: Callable[[str], bool]) -> bool:
        """Return whether something has changed since a moment.

        ``whose``: what all that share an answer may see. ``ask`` asks the API about a moment;
        what it raises is raised.
        """
        now, known = self._timer(), self._known.get(whose)
        if known is not None and known.since <= since and now - known.at < SECONDS:
            return False
        earliest = since
        if known is not None and now - known.at < _BEGINS_SECONDS:
            earliest = min(since, known.since)
        if ask(earliest):
            self._known.pop(whose, None)
            return earliest == since or ask(since)
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[whose] = _Known(earliest, now)
        return False
