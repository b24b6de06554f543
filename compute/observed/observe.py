"""The refresh loop of one cluster: read in bulk and publish what changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from common import clock
from common.log import logger
from common.messages.facts import HostFacts
from common.metrics import loops, table
from compute.hypervisor.port import GuestUse, Hypervisor, HypervisorError
from compute.observed.facts import HostFactsCache
from compute.observed.vm_states import VmChanges

LOG = logger(__name__)


class Observer:
    """One thread per cluster, so that a dead cluster delays no other."""

    def __init__(
        self,
        hypervisor: Hypervisor,
        cache: HostFactsCache,
        vm_changes: VmChanges,
        seconds: float,
        news: Callable[[list[HostFacts]], None],
        looked: Callable[[str], None],
        guests: Callable[[str, Sequence[GuestUse]], None],
    ) -> None:
        self._hypervisor, self._facts, self._vm_changes = hypervisor, cache, vm_changes
        self._seconds, self._news, self._looked = seconds, news, looked
        self._guests = guests
        self._stop = threading.Event()
        self._one_look = threading.Lock()
        self._name = f"observe {hypervisor.cluster}"
        self.reached: bool | None = None
        """Whether the cluster answered the last time; None: it was not looked at yet."""
        self._thread = threading.Thread(
            target=self._loop, name=f"compute-observe-{hypervisor.cluster}", daemon=True
        )

    @property
    def cluster(self) -> str:
        """The name of its cluster."""
        return self._hypervisor.cluster

    def answers(self) -> bool:
        """Return whether the cluster answered the last time."""
        return bool(self.reached)

    def start(self) -> None:
        """Begin; the first refresh is done at once."""
        self._thread.start()

    def stop(self) -> None:
        """End the loop."""
        self._stop.set()

    def join(self, seconds: float) -> None:
        """Wait for the end of a refresh in progress."""
        self._thread.join(seconds)

    def look(self) -> None:
        """Refresh once and publish what changed."""
        with self._one_look:
            self._look()

    def look_safely(self) -> None:
        """As ``look``; errors are logged."""
        try:
            self.look()
        except Exception:
            LOG.exception("The refresh of %s failed unexpectedly.", self._hypervisor.cluster)
            loops.failed(self._name)
        else:
            loops.done(self._name, self._seconds)

    def _look(self) -> None:
        began, moved = clock.utcnow(), False
        try:
            seen = self._hypervisor.observe()
        except HypervisorError as error:
            LOG.warning("Cluster %s: %s", self._hypervisor.cluster, error.message)
            news = self._facts.unreachable(self._hypervisor.cluster, error.message)
            self._vm_changes.unreachable(self._hypervisor.cluster)
            self._guests(self._hypervisor.cluster, ())
            self.reached = False
        else:
            self.reached = True
            news = self._facts.update(seen.hosts, seen.cluster)
            moved = self._vm_changes.update(seen, began)
            self._guests(self._hypervisor.cluster, seen.guests)
        table.PROXMOX_REACHABLE.set(float(self.reached), self.cluster)
        if news or moved:
            self._news(news)
        self._looked(self.cluster)

    def _loop(self) -> None:
        while not self._stop.is_set():
            self.look_safely()
            self._stop.wait(self._seconds)
