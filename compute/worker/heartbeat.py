"""Heartbeats: a timer sends the worker a tick, and consuming it sends the heartbeat.

So a heartbeat proves that the worker consumes messages, not only that its process runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from common import clock, rpc
from common.context import internal
from common.log import logger
from common.messages.facts import Heartbeat, HostFacts, VmStates
from common.messages.queues import Queues
from common.messages.reports import Working
from common.messages.topics import COMPUTE_TOPIC
from common.metrics import loops
from common.release import VERSION
from common.rpc import events
from common.rpc.events import ConductorEvents, HostEvents
from common.rpc.typed import TypedClient
from compute.observed.facts import HostFactsCache
from compute.observed.vm_states import VmChanges
from compute.rpc_api import WorkerRpc

if TYPE_CHECKING:
    from common.rpc.messaging import oslo_messaging

LOG = logger(__name__)

#: hosts whose facts are sent in one message (about 3 KiB each)
FACTS_PER_MESSAGE = 200
#: after this time all facts are published again: a message may have been lost or overtaken
PUBLISH_ALL_SECONDS = 300.0
#: number of intervals without a consumed tick after which the bus counts as down, and after which
#: the worker counts as dead
_DEAF_INTERVALS, _DEAD_INTERVALS = 2.5, 6


class Heartbeats:
    """The timer, and the content of heartbeats."""

    def __init__(
        self,
        transport: oslo_messaging.Transport,
        worker: str,
        seconds: float,
        cache: HostFactsCache,
        vm_changes: VmChanges,
        working: Callable[[], tuple[Working, ...]],
        queues: Callable[[], Queues],
        timer: Callable[[], float] = time.monotonic,
        address: Callable[[], str] | None = None,
    ) -> None:
        """``address`` returns the worker with its tenure; empty: it carries nothing."""
        self._address = address or (lambda: worker)
        self._worker, self._seconds = worker, seconds
        self._facts, self._vm_changes = cache, vm_changes
        self._working, self._queues = working, queues
        self._timer, self._published_all_at = timer, timer()
        self._began_at = self._published_all_at
        self._conductor = events.to_conductor(transport)
        self._schedulers = events.to_schedulers(transport)
        workers: TypedClient[WorkerRpc] = TypedClient(rpc.Client(transport, COMPUTE_TOPIC))
        self._self = workers.to(worker)
        self._one_beat = threading.Lock()
        self._beat_at: float | None = None
        self._known: frozenset[str] = frozenset()  # hosts whose facts were sent before
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="compute-heartbeats", daemon=True)

    def start(self) -> None:
        """Start the timer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the timer."""
        self._stop.set()
        self._thread.join(5)

    def tick(self) -> None:
        """Send the worker a tick over the bus."""
        try:
            self._self.cast(internal(), WorkerRpc.tick)
        except Exception:
            LOG.exception("The heartbeat's tick could not be sent.")

    def beat(self, *, published: bool = False) -> None:
        """Send the conductor and the schedulers a heartbeat with what changed.

        ``published``: all hosts are published to placement, also those without changes.
        """
        with self._one_beat:
            self._beat_at = self._timer()
            loops.done("heartbeat nova-compute", self._seconds)
            worker = self._address()
            if not worker:
                return  # what it consumes shows in its claims
            if self._timer() - self._published_all_at >= PUBLISH_ALL_SECONDS:
                self._publish_all()
            try:
                for heartbeat in self._heartbeats(worker, published=published):
                    self._publish(heartbeat)
                for states in self._vm_changes.take(self._timer()):
                    self._publish_vms(replace(states, worker=worker))
            except Exception:
                self._publish_all()
                raise

    def consumes(self) -> bool:
        """Return whether a tick was consumed lately; also True at first."""
        last = self._began_at if self._beat_at is None else self._beat_at
        return self._timer() - last < _DEAD_INTERVALS * self._seconds

    def hears(self) -> bool:
        """Return whether ticks are consumed now."""
        last = self._beat_at
        return last is not None and self._timer() - last < _DEAF_INTERVALS * self._seconds

    def announce(self, *, published: bool = False) -> None:
        """Send a heartbeat with everything, for a service that has just started; see ``beat``."""
        self._publish_all()
        self.beat(published=published)

    def _publish_all(self) -> None:
        self._facts.publish_all()
        self._vm_changes.publish_all()
        self._published_all_at = self._timer()

    def _publish(self, heartbeat: Heartbeat) -> None:
        self._conductor.cast(internal(), ConductorEvents.heartbeat, heartbeat=heartbeat)
        self._schedulers.cast(internal(), HostEvents.update_hosts, heartbeat=heartbeat)

    def _publish_vms(self, states: VmStates) -> None:
        self._conductor.cast(internal(), ConductorEvents.vm_states, seen=states)

    def begin_tenure(self) -> None:
        """Publish everything, to placement too, with the next heartbeats: a tenure begins."""
        self._known = frozenset()
        self._publish_all()

    def _heartbeats(self, worker: str, *, published: bool) -> Iterator[Heartbeat]:
        facts, clusters = self._facts.take()
        reported = {one.host for one in facts}
        hosts = self._facts.names()
        quiet = tuple(host for host in hosts if host not in reported)
        own = frozenset(hosts)
        # What is new to this worker is published to placement without being asked for.
        published = published or not reported & self._known
        self._known |= reported
        queues, left = self._queues(), self._facts.left()
        # At least one message, even if nothing changed. Each host is named in one of them.
        for position, part in enumerate(_parts(facts)):
            first = position == 0
            changed = tuple(one.host for one in part if one.host in own)
            named = changed + quiet if first else changed
            yield Heartbeat(
                worker=worker,
                sent_at=clock.utcnow(),
                hosts=named,
                facts=part,
                clusters=clusters if first else (),
                working=self._working() if first else (),
                version=VERSION,
                published=published,
                left=tuple(host for host in named if host in left),
                queues=queues.of(named),
            )

    def _loop(self) -> None:
        while not self._stop.is_set():
            self.tick()
            self._stop.wait(self._seconds)


def _parts(facts: tuple[HostFacts, ...]) -> Iterator[tuple[HostFacts, ...]]:
    for start in range(0, max(1, len(facts)), FACTS_PER_MESSAGE):
        yield facts[start : start + FACTS_PER_MESSAGE]
