"""The doctor's rounds: a worker examines its clusters once they are seen, and then now and then.

They go on beside the worker's work, in one thread and with a client of their own: one call at a
time, as many as `scope` allows, and nothing waits for them. Findings are logged when they come and
go, and counted in a metric. Each worker asks for its own nodes only, and once for all of them.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Mapping

from oslo_config import cfg

from common.errors import MicronovaError
from common.findings import Finding, Level
from common.log import logger
from common.metrics import loops, table
from common.metrics.instruments import Samples
from compute.doctor import examine
from compute.doctor.gather import Scope
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.observe.snapshot import Snapshot
from compute.hypervisor.proxmox.settings import ClusterSettings

LOG = logger(__name__)

#: nodes of a cluster that a worker looks at, three calls each; the command looks at all
MOST_NODES = 50
#: seconds until a cluster with a finding of level BROKEN is examined again
BROKEN_SECONDS = 60.0
_LOOP = "doctor"


class Rounds:
    """One thread for all clusters of a worker.

    `snapshots` gives the last snapshot of each cluster, by its settings, so that nothing is read
    twice; it may raise HypervisorError.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        snapshots: Mapping[ClusterSettings, Callable[[], Snapshot]],
        seconds: float,
    ) -> None:
        self._conf, self._snapshots, self._seconds = conf, dict(snapshots), seconds
        self._found: dict[str, tuple[Finding, ...]] = {}
        self._awaited = {one.name for one in snapshots}
        self._lock = threading.Lock()
        self._begin, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._loop, name="compute-doctor", daemon=True)
        table.DOCTOR_FINDINGS.watch(self._samples)

    def start(self) -> None:
        """Begin; the first round follows the first refresh of all clusters."""
        self._thread.start()

    def seen(self, cluster: str) -> None:
        """Note that a cluster was refreshed, or doesn't answer."""
        with self._lock:
            self._awaited.discard(cluster)
            if not self._awaited:
                self._begin.set()

    def stop(self) -> None:
        """Begin nothing further."""
        self._stop.set()
        self._begin.set()

    def join(self, seconds: float) -> None:
        """Wait for the end of a call in progress."""
        self._thread.join(seconds)

    @property
    def findings(self) -> Mapping[str, tuple[Finding, ...]]:
        """Cluster → what was found the last time."""
        return self._found

    def _loop(self) -> None:
        self._begin.wait()
        while not self._stop.is_set():
            pause = self._seconds
            for cluster, last in self._snapshots.items():
                if self._look(cluster, last):
                    pause = min(pause, BROKEN_SECONDS)
            self._stop.wait(pause)

    def _look(self, cluster: ClusterSettings, last: Callable[[], Snapshot]) -> bool:
        """Examine a cluster; return whether something is broken there."""
        scope = Scope(MOST_NODES, lambda: not self._stop.is_set())
        try:
            with contextlib.closing(Client(cluster)) as client:
                seen = examine.of_cluster(self._conf, client, last, scope)
        except MicronovaError as error:
            LOG.warning("Cluster %s can't be examined: %s", cluster.name, error.message)
            loops.failed(_LOOP)
            return True
        except Exception:
            # A mistake of a check must not end the rounds; the agent works on either way.
            LOG.exception("Cluster %s can't be examined.", cluster.name)
            loops.failed(_LOOP)
            return True
        if not self._stop.is_set():
            self._note(cluster.name, seen.findings)
            loops.done(_LOOP, self._seconds)
        return any(one.level is Level.BROKEN for one in seen.findings)

    def _note(self, cluster: str, found: tuple[Finding, ...]) -> None:
        before = self._found.get(cluster, ())
        self._found[cluster] = found
        for one in found:
            if one not in before:
                LOG.log(one.level.severity, "%s (%s)", one, one.code)
        still = {(one.code, one.where) for one in found}
        for code, where in sorted({(one.code, one.where) for one in before} - still):
            LOG.info("%s: mended (%s).", where, code)

    def _samples(self) -> Samples:
        return {
            (cluster, code, level): float(number)
            for cluster, found in self._found.copy().items()
            for (code, level), number in Counter(
                (one.code, one.level.value) for one in found
            ).items()
        }
