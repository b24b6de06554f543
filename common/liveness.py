"""Heartbeats of conductors and schedulers: a message to itself, consumed, proves that it works.

A timer casts a tick to the process's own queue; consuming it tells the conductor. So a sign of
life proves that the process still takes messages, not only that it runs.
"""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections.abc import Callable

from common import context, events, rpc
from common.context import RequestContext
from common.errors import Unavailable
from common.events import ConductorEvents
from common.health import Check
from common.log import logger
from common.messaging import oslo_messaging
from common.metrics import loops
from common.typed_rpc import TypedClient

LOG = logger(__name__)

#: seconds between two signs; a service is down after six missed ones
INTERVAL_SECONDS = 10.0


def process_name() -> str:
    """Return a name for this process that is unique among all machines."""
    return f"{socket.gethostname()}-{os.getpid()}"


#: so many intervals without a sign of oneself, and a process counts as dead
_DEAD_INTERVALS = 6
#: so many intervals without a sign of oneself, and nobody can be heard
_DEAF_INTERVALS = 2.5


class Hearing:
    """Whether others that are silent can be heard at all: since when signs came without a gap.

    While the message bus is away everybody is silent, and right after it everybody still was.
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
    """Return seconds between two signs, where silence of so many seconds means something."""
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
        self._topic = f"alive.{binary}"
        own: TypedClient[Ticks] = TypedClient(rpc.Client(transport, self._topic))
        self._own = own.to(name)
        self._conductor = events.to_conductor(transport)
        self._server = rpc.Server(transport, self._topic, name, [Ticks(self._beat)], workers=1)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"beat-{binary}", daemon=True)

    def consumes(self) -> bool:
        """Return whether it has consumed a sign of its own lately; also True at first."""
        lately = _DEAD_INTERVALS * self._seconds
        silent = min(self.hearing.silent_seconds(), time.monotonic() - self._made_at)
        return silent < lately

    @property
    def bus(self) -> Check:
        """Whether signs come without a gap now."""
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
        self._conductor.cast(ctxt, ConductorEvents.alive, binary=self._binary, host=self._name)

    def _run(self) -> None:
        while True:
            try:
                self._own.cast(context.internal(), Ticks.tick)
            except Unavailable:
                LOG.warning("The heartbeat could not be sent; trying again.")
            if self._stopped.wait(self._seconds):
                return
