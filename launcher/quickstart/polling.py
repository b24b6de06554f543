"""Looks at other programs again, until a deadline: what they do comes with no event."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

Pause = Callable[[float], object]
"""Waits so many seconds."""


def looks(
    look: Callable[[], T],
    seconds: float,
    every_seconds: float,
    pause: Pause | None = None,
    timer: Callable[[], float] = time.monotonic,
) -> Iterator[T]:
    """Yield what a look finds: at once, and again after each pause that begins before the
    deadline."""
    pause = pause or threading.Event().wait
    until = timer() + seconds
    yield look()
    while timer() < until:
        pause(every_seconds)
        yield look()
