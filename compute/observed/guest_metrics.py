"""What servers use, for the metrics, where [metrics] guests asks for it.

The numbers come with each refresh of a cluster, by VMID; a conductor says whose VMIDs they are,
once a minute at most and only while somebody scrapes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from common.errors import MicronovaError
from common.log import logger
from common.messages.guests import GuestOwner
from common.metrics import table
from common.metrics.instruments import Labels, Samples
from compute.hypervisor.port import GuestUse

LOG = logger(__name__)

#: an answer of the conductor is used for so long
OWNERS_SECONDS = 60.0

Owners = Mapping[tuple[str, int], Labels]


class GuestMetrics:
    """The last numbers of the servers on a worker's hosts. Others' VMs have none."""

    def __init__(
        self,
        ask: Callable[[], Sequence[GuestOwner]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``ask`` returns whose the VMs on the worker's hosts are, or raises MicronovaError."""
        self._ask, self._now = ask, now
        self._lock = threading.Lock()
        self._uses: dict[str, Sequence[GuestUse]] = {}
        self._owners: Owners = {}
        self._asked_at, self._asks = float("-inf"), False
        table.GUEST_RUNNING.watch(self._running)
        table.GUEST_CPUS.watch(self._cpus)
        table.GUEST_MEMORY.watch(self._memory)
        table.GUEST_NETWORK.watch(self._network)
        table.GUEST_DISK.watch(self._disk)
        table.GUEST_UPTIME.watch(self._uptime)

    def update(self, cluster: str, uses: Sequence[GuestUse]) -> None:
        """Take over what a cluster's VMs use; nothing while it doesn't answer."""
        with self._lock:
            self._uses[cluster] = uses

    def refresh(self) -> None:
        """Ask whose the VMs are."""
        try:
            found = self._ask()
        except MicronovaError as error:
            LOG.info("The owners of guests are not known: %s", error.message)
            found = None
        with self._lock:
            self._asks, self._asked_at = False, self._now()
            if found is not None:
                self._owners = {
                    (one.cluster, one.vmid): (one.project_id, one.server_uuid) for one in found
                }

    def _known(self) -> Iterator[tuple[Labels, GuestUse]]:
        """Yield project and server of each guest; a scrape doesn't wait for a conductor."""
        with self._lock:
            stale = self._now() - self._asked_at >= OWNERS_SECONDS and not self._asks
            self._asks = self._asks or stale
            uses, owners = dict(self._uses), self._owners
        if stale:
            threading.Thread(target=self.refresh, name="guest-owners", daemon=True).start()
        for cluster, some in uses.items():
            for use in some:
                labels = owners.get((cluster, use.vmid))
                if labels is not None:
                    yield labels, use

    def _running(self) -> Samples:
        return {labels: float(use.running) for labels, use in self._known()}

    def _uptime(self) -> Samples:
        return {labels: float(use.uptime_seconds) for labels, use in self._known()}

    def _cpus(self) -> Samples:
        return self._two(
            ("total", "used"), lambda use: (float(use.vcpus), round(use.cpus_used, 4))
        )

    def _memory(self) -> Samples:
        return self._two(
            ("total", "used"), lambda use: (float(use.memory_bytes), float(use.memory_used_bytes))
        )

    def _network(self) -> Samples:
        return self._two(
            ("in", "out"), lambda use: (float(use.received_bytes), float(use.sent_bytes))
        )

    def _disk(self) -> Samples:
        return self._two(
            ("read", "written"), lambda use: (float(use.read_bytes), float(use.written_bytes))
        )

    def _two(
        self, names: tuple[str, str], of: Callable[[GuestUse], tuple[float, float]]
    ) -> Samples:
        return {
            (*labels, name): value
            for labels, use in self._known()
            for name, value in zip(names, of(use), strict=True)
        }
