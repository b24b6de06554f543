"""Heartbeats of conductors and schedulers: a message to itself, consumed, proves that it works.

A timer casts a tick to the process's own queue; consuming it sends the conductor a heartbeat. So
a heartbeat proves that the process still takes messages, not only that it runs.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from common import context, rpc
from common.context import RequestContext
from common.errors import Unavailable
from common.log import logger
from common.messages import topics
from common.metrics import loops
from common.process.health import Check
from common.release import VERSION
from common.rpc import events
from common.rpc.events import ConductorEvents
from common.rpc.messaging import oslo_messaging
from common.rpc.typed import TypedClient

LOG = logger(__name__)

#: seconds between two heartbeats; a service is down after six missed ones
INTERVAL_SECONDS = 10.0


#: number of intervals without an own heartbeat after which the process counts as dead
_DEAD_INTERVALS = 6
#: number of intervals without an own heartbeat after which the silence of others proves nothing
_DEAF_INTERVALS = 2.5


class Hearing:
    """Whether silence of others proves anything: since when heartbeats arrive without a gap.

    While the message bus is down no heartbeat arrives, and right after it all are still overdue.
    """

    def __init__(self, gap_seconds: float, timer: Callable[[], float] = time.monotonic) -> None:
        self._gap, self._timer = gap_seconds, timer
        self._since = self._last = -math.inf

    def note(self) -> None:
        """Note a heartbeat."""
        now = self._timer()
        if now - self._last > self._gap:
            self._since = now
        self._last = now

    def silent_seconds(self) -> float:
        """Return for how long no heartbeat has arrived."""
        return self._timer() - self._last

    def for_seconds(self) -> float:
        """Return the seconds that heartbeats have arrived without a gap; 0: there is one now."""
        now = self._timer()
        return 0.0 if now - self._last > self._gap else now - self._since


def interval(down_seconds: float) -> float:
    """Return seconds between two heartbeats if a service is down after ``down_seconds``."""
    return min(INTERVAL_SECONDS, down_seconds / 4)


class Ticks:
    """Endpoint of a process's own topic."""

    def __init__(self, beat: Callable[[RequestContext], None]) -> None:
        self._beat = beat

    def tick(self, ctxt: RequestContext) -> None:
        """Take our own message."""
        self._beat(ctxt)


class Beat:
    """Reports one process as alive, for as long as it consumes."""

    def __init__(
        self,
        transport: oslo_messaging.Transport,
        binary: str,
        name: str,
        seconds: float = INTERVAL_SECONDS,
    ) -> None:
        self._binary, self._name, self._seconds = binary, name, seconds
        self._made_at = time.monotonic()
        self.hearing = Hearing(_DEAF_INTERVALS * seconds)
        self._topic = topics.alive(binary)
        own: TypedClient[Ticks] = TypedClient(rpc.Client(transport, self._topic))
        self._own = own.to(name)
        self._conductor = events.to_conductor(transport)
        self._server = rpc.Server(transport, self._topic, name, [Ticks(self._beat)], workers=1)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"beat-{binary}", daemon=True)

    def consumes(self) -> bool:
        """Return whether it has consumed an own heartbeat lately; also True at first."""
        lately = _DEAD_INTERVALS * self._seconds
        silent = min(self.hearing.silent_seconds(), time.monotonic() - self._made_at)
        return silent < lately

    @property
    def bus(self) -> Check:
        """Whether heartbeats arrive without a gap now."""
        return lambda: self.hearing.for_seconds() > 0

    def start(self) -> None:
        """Start; the first heartbeat is sent at once."""
        self._server.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop the heartbeats."""
        self._stopped.set()
        self._thread.join()
        self._server.stop()

    def _beat(self, ctxt: RequestContext) -> None:
        self.hearing.note()
        loops.done(f"heartbeat {self._binary}", self._seconds)
        self._conductor.cast(
            ctxt, ConductorEvents.alive, binary=self._binary, host=self._name, version=VERSION
        )

    def _run(self) -> None:
        while True:
            try:
                self._own.cast(context.internal(), Ticks.tick)
            except Unavailable:
                LOG.warning("The heartbeat could not be sent; trying again.")
            if self._stopped.wait(self._seconds):
                return
