"""What this worker carries, and for how long: leases that conductors grant it.

A lease is counted from before it was asked for, by a clock that also runs while the machine
sleeps, and ends a little earlier here than in the database. So what is written to a hypervisor is
written by the holder of its lease, whatever stood still in between; see decision 29.
"""

from __future__ import annotations

import functools
import secrets
import threading
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol

from common.context import internal
from common.errors import MicronovaError, Unavailable
from common.log import logger
from common.messages.tenures import Claim, Granted, Unit, address, number_of, worker_of
from common.process import names
from common.release import VERSION
from common.rpc import events
from common.rpc.events import ConductorEvents
from compute.hypervisor.acting import acts_for
from compute.hypervisor.port import Abandoned

if TYPE_CHECKING:
    from common.rpc.messaging import oslo_messaging

LOG = logger(__name__)

#: share of a lease by which it ends earlier here, and after which it is asked for again
_MARGIN_SHARE, _ASK_SHARE = 1 / 10, 1 / 6
#: seconds between two claims until the first answer, and for which an answer is waited for
_FIRST_SECONDS, _ANSWER_SECONDS = 1.0, 5.0
#: seconds for which a command waits for the lease that it names, and a write for its renewal
_AWAIT_SECONDS, _RENEWED_SECONDS = 5.0, 60.0


def boot_time() -> float:
    """Return the seconds since the machine's start, its sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Changed(Protocol):
    """Is called after an answer that changes what the worker carries."""

    def __call__(self, gained: Collection[str], lost: Collection[str]) -> None:
        """Both are names of clusters."""


class Tenure:
    """Claims units for as long as the worker consumes its messages; threads may share it."""

    def __init__(
        self,
        transport: oslo_messaging.Transport,
        worker: str,
        units: Collection[Unit],
        consumes: Callable[[], bool],
        changed: Changed,
        timer: Callable[[], float] = boot_time,
        *,
        await_seconds: float = _AWAIT_SECONDS,
        renewed_seconds: float = _RENEWED_SECONDS,
    ) -> None:
        self._conductor = events.to_conductor(transport, repeats=True, seconds=_ANSWER_SECONDS)
        self._worker, self._units = worker, {one.name: one.cluster for one in units}
        self._claimed = tuple(units)
        self._consumes, self._changed, self._timer = consumes, changed, timer
        self._await_seconds, self._renewed_seconds = await_seconds, renewed_seconds
        self._process, self._machine = secrets.token_hex(8), names.machine(transport.conf)
        self._news = threading.Condition()
        self._number, self._lost = 0, False
        self._clusters: frozenset[str] = frozenset()
        self._until = float("-inf")
        self._pause = _FIRST_SECONDS
        self._refusal = ""
        self._ended = threading.Event()
        self._asks = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="compute-tenure", daemon=True)

    @property
    def worker(self) -> str:
        """This worker with its tenure; empty: it carries nothing."""
        return address(self._worker, self._number) if self._clusters else ""

    @property
    def clusters(self) -> frozenset[str]:
        """The clusters whose agents it carries."""
        return self._clusters

    def start(self) -> None:
        """Begin to claim."""
        self._thread.start()

    def stop(self) -> None:
        """Claim nothing more; what is held is held until it runs out, or is released."""
        self._ended.set()
        self._asks.set()
        if self._thread.is_alive():
            self._thread.join()

    def release(self) -> None:
        """Give up what is held, so that another worker needn't wait: nothing is worked on."""
        mine = self.worker
        self._take(Granted(0, 0.0))
        if not mine:
            return
        try:
            self._conductor.call(internal(), ConductorEvents.release_agents, worker=mine)
        except MicronovaError as error:
            LOG.warning("The agents were not released; their leases expire: %s", error.message)

    # --- what it is asked

    def is_over(self, worker: str) -> bool:
        """Return whether a tenure, by the worker's address, has ended."""
        return worker != self.worker

    def accepts(self, worker: str) -> bool:
        """Return whether a command to this address is carried out.

        A conductor may send it before its answer to the claim has arrived: it is waited for.
        """
        with self._news:
            to_come = worker_of(worker) == self._worker and number_of(worker) >= self._number
            if worker != self.worker and to_come:
                self._asks.set()
                self._news.wait_for(lambda: worker == self.worker, self._await_seconds)
            return worker == self.worker

    def require(self, cluster: str) -> None:
        """Return if this thread may write to a cluster now; a lease that ran out is waited for.

        Raises Abandoned in a job whose tenure has ended, else Unavailable.
        """
        acts = acts_for()

        def decided() -> bool:
            over = acts is not None and acts != self.worker
            return over or self._holds(cluster)

        with self._news:
            if not decided():
                LOG.warning("A write to cluster %s waits for the lease of its agents.", cluster)
                patience = self._await_seconds if acts is None else self._renewed_seconds
                self._news.wait_for(decided, patience)
            if self._holds(cluster) and acts in (None, self.worker):
                return
        if acts is not None:
            raise Abandoned
        raise Unavailable(f"This worker does not carry the agents of cluster {cluster} now.")

    def _holds(self, cluster: str) -> bool:
        return cluster in self._clusters and self._timer() < self._until

    # --- claims

    def _loop(self) -> None:
        while not self._ended.is_set():
            self._asks.clear()
            self._claim_safely()
            self._asks.wait(self._pause)

    def _claim_safely(self) -> None:
        """Claim once. Without an answer what is held runs out by itself."""
        if not self._consumes():
            LOG.warning("The worker consumes no messages: it claims nothing.")
            return
        began = self._timer()
        claim = Claim(
            self._worker,
            self._process,
            self._machine,
            0 if self._lost else self._number,
            self._claimed,
            VERSION,
        )
        try:
            granted = self._conductor.call(internal(), ConductorEvents.claim_agents, claim=claim)
        except MicronovaError as error:
            LOG.warning("The agents' leases were not renewed: %s", error.message)
            return
        except Exception:
            # Without this thread the worker would carry nothing more until it is restarted.
            LOG.exception("The agents' leases could not be claimed.")
            return
        self._take(granted, began)

    def _take(self, granted: Granted, began: float = 0.0) -> None:
        """Take over an answer to a claim that was sent then."""
        clusters = frozenset(self._units[name] for name in granted.held if name in self._units)
        with self._news:
            before, lost = self._clusters, self._clusters - clusters
            # What was lost may be another worker's: all that was begun ends with the tenure.
            gained = clusters if lost or granted.tenure != self._number else clusters - before
            ended = before if lost or granted.tenure != self._number else frozenset[str]()
            if lost:
                clusters = gained = frozenset()
            self._lost = bool(lost) or (self._lost and not granted.tenure)
            self._number = granted.tenure or self._number
            self._clusters = clusters
            self._until = began + granted.seconds * (1 - _MARGIN_SHARE)
            self._pause = granted.seconds * _ASK_SHARE or self._pause
            self._news.notify_all()
        self._say(granted)
        if gained or ended:
            self._changed(gained, ended)

    def _say(self, granted: Granted) -> None:
        """Log why it carries less than it could, once."""
        why = "; ".join(f"{name}: {holder}" for name, holder in granted.holders.items())
        if not granted.tenure and granted.seconds:
            why = f"another process is worker {self._worker}"
        if why and why != self._refusal:
            LOG.info("Standing by: others carry the agents of %s.", why)
        self._refusal = why


def guard(tenure: Tenure, cluster: str) -> Callable[[], None]:
    """Return what is called before each write to a cluster; see ``Tenure.require``."""
    return functools.partial(tenure.require, cluster)
