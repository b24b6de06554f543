"""Wait as long as there is progress: the deadline moves with it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from common.errors import Unavailable

SECONDS = 240
_PAUSE_SECONDS = 0.1
_DETAIL_SECONDS = 5
#: pause after a poll, in multiples of its duration: polling slows down the polled processes
_REST = 9


class Missing(NamedTuple):
    """What is missing, in words, and how much exists already."""

    text: str
    done: int = 0


class Patience:
    """Polls until nothing is missing; `stopping` ends the polling.

    `report` is called with what is missing while that changes, at most every few seconds.
    """

    def __init__(
        self,
        stopping: threading.Event,
        report: Callable[[str], None],
        *,
        seconds: float = SECONDS,
        pause_seconds: float = _PAUSE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stopping, self._report = stopping, report
        self._seconds, self._pause_seconds = seconds, pause_seconds
        self._clock = clock

    def until(self, look: Callable[[], Missing | None]) -> None:
        """Return when nothing is missing.

        Raises Unavailable with what is, when it hasn't become more for so many seconds.
        """
        began = self._clock()
        most, moved_at, reported_at = -1, began, began
        while True:
            looked_at = self._clock()
            missing = look()
            if missing is None:
                return
            now = self._clock()
            if missing.done > most:
                most, moved_at = missing.done, now
                if now - reported_at >= _DETAIL_SECONDS:
                    self._report(missing.text)
                    reported_at = now
            if now - moved_at > self._seconds:
                raise Unavailable(
                    f"The cloud isn't ready: {missing.text}; for {self._seconds:g} s nothing "
                    "has moved."
                )
            if self._stopping.wait(max(self._pause_seconds, _REST * (now - looked_at))):
                raise Unavailable(f"The cloud isn't ready: {missing.text}.")
