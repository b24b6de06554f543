"""Whether this machine's clock is right: it is compared with the cloud's, which all follow.

The cloud's clock is its database's. Who has no database asks a conductor for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from common import clock
from common.errors import ConfigurationError, Unavailable
from common.log import logger
from common.metrics import table

LOG = logger(__name__)


@dataclass(frozen=True)
class Reading:
    """The cloud's clock, as it was read."""

    seconds: float
    """Since 1970."""
    at: float
    """By the monotonic clock."""
    took: float
    """Seconds that the way there and back took."""


Ask = Callable[[], Reading]
"""Reads the cloud's clock. Raises Unavailable."""

#: by how much a machine's clock may differ where a service starts
MOST_SECONDS = 10.0
#: from which difference on a running service logs it
MUCH_SECONDS = 2.0
#: seconds between two comparisons
EVERY_SECONDS = 60.0
#: seconds between two looks at whether a comparison is due
LOOK_SECONDS = 5.0
#: a step of the machine's clock, or a pause of the machine, after which it is due at once
STEP_SECONDS = 1.0
#: a comparison that took longer says little; it is repeated at the next look
SLOW_SECONDS = 4.0


class Timekeeper:
    """Compares the machine's clock with the cloud's, at the start and each minute.

    A later step of the machine's clock changes nothing: the service counts by the cloud's. But a
    service that could not compare at its start, and would not have started else, is not ready
    until the clock is right.
    """

    def __init__(
        self,
        ask: Ask,
        machine: Callable[[], float] = time.time,
        *,
        every_seconds: float = EVERY_SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """``machine`` reads the machine's clock."""
        self._ask, self._machine = ask, machine
        self._every_seconds, self._look_seconds = every_seconds, look_seconds
        self._was_right = False
        self._off: float | None = None
        self._due_at = 0.0
        self._gap = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="compare-clocks", daemon=True)

    def start(self) -> None:
        """Compare, then go on comparing. Raises ConfigurationError if the clock is off too far.

        If nobody answers yet the service starts by its machine's clock, and asks again.
        """
        self.compare()
        self.may_serve()
        self._thread.start()

    def stop(self) -> None:
        """End the comparisons."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def may_serve(self) -> bool:
        """Return True; raises ConfigurationError if no comparison has found the clock right, and
        the last one found it off too far. A check."""
        if self._off is None or self._was_right:
            return True
        raise ConfigurationError(
            f"This machine's clock is {differs(self._off)} the database's; a service starts with "
            f"{MOST_SECONDS:.0f} s at the most. Correct the clock, for instance by "
            "'chronyc makestep', and keep it by a time service."
        )

    def compare(self) -> float | None:
        """Compare once, and follow the cloud's clock; return by how many seconds the machine's is
        ahead, or None if nobody answers."""
        try:
            found = self._ask()
        except Unavailable as error:
            LOG.debug("The cloud's clock can't be read: %s", error.message)
            return None
        if found.took > SLOW_SECONDS:
            return None
        clock.follow(found.seconds, found.at)
        now = time.monotonic()
        self._gap = self._machine() - now
        self._due_at = now + self._every_seconds
        off = self._gap - (found.seconds - found.at)
        self._off, self._was_right = off, self._was_right or abs(off) <= MOST_SECONDS
        table.CLOCK_OFFSET.set(off)
        if abs(off) > MUCH_SECONDS:
            LOG.warning("This machine's clock is %s the database's.", differs(off))
        return off

    def _run(self) -> None:
        while not self._ended.wait(self._look_seconds):
            now = time.monotonic()
            stepped = abs(self._machine() - now - self._gap) > STEP_SECONDS
            if now >= self._due_at or stepped:
                self.compare()


def read(ask: Callable[[], float]) -> Reading:
    """Read a clock by asking for its seconds since 1970."""
    before = time.monotonic()
    seconds = ask()
    took = time.monotonic() - before
    return Reading(seconds, before + took / 2, took)


def differs(off: float) -> str:
    """Return words for a difference of a machine's clock, before the name of the other clock."""
    return f"{abs(off):.1f} s {'ahead of' if off > 0 else 'behind'}"
