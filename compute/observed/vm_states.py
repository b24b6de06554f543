"""VM states as this worker saw them: publishes changes, and at intervals everything.

A change is published at once and again a little later, as the conductor ignores refreshes right
after an operation. That a VM is gone takes two refreshes of the whole cluster in a row.
"""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from common.messages.facts import LAST, VmFacts, VmStates
from compute.hypervisor.port import Observation
from compute.observed.error_causes import Causes

#: VMs in one message (some 80 bytes each)
VMS_PER_MESSAGE = 500
#: after this time a change is published again
REPEAT_SECONDS = 30.0


@dataclass
class _Reported:
    """The last report of a VM (None: that it is gone), and whether it was sent twice."""

    facts: VmFacts | None
    at: float
    twice: bool


@dataclass
class _Cluster:
    """The last two refreshes of one cluster, and what was reported of it."""

    seen_at: datetime.datetime
    nodes: tuple[str, ...] = ()
    now: Mapping[int, VmFacts] = field(default_factory=dict)
    before: Mapping[int, VmFacts] = field(default_factory=dict)
    whole_looks: int = 0
    reported: dict[int, _Reported] = field(default_factory=dict)
    report_all: bool = True
    causes: Causes = field(default_factory=Causes)

    @property
    def whole(self) -> bool:
        return self.whole_looks >= 2

    def here(self, vmid: int) -> VmFacts | None:
        """Return the VM; unknown if missing for the first time, or from part of the cluster."""
        facts = self.now.get(vmid)
        if facts is None and (vmid in self.before or not self.whole):
            return VmFacts(vmid, "", 0)
        return facts


class VmChanges:
    """Takes refreshes, returns changes; thread-safe."""

    def __init__(self, worker: str, vms_per_message: int = VMS_PER_MESSAGE) -> None:
        self._worker, self._most = worker, vms_per_message
        self._lock = threading.Lock()
        self._clusters: dict[str, _Cluster] = {}

    def update(self, seen: Observation, seen_at: datetime.datetime) -> bool:
        """Take over a refresh; return whether it changed anything. ``seen_at``: its beginning."""
        with self._lock:
            name = seen.cluster.cluster
            cluster = self._clusters.setdefault(name, _Cluster(seen_at))
            cluster.before = cluster.now
            cluster.now = {vm.vmid: vm for vm in seen.vms}
            cluster.seen_at, cluster.nodes = seen_at, seen.nodes
            was_whole = cluster.whole
            cluster.whole_looks = cluster.whole_looks + 1 if seen.whole else 0
            if cluster.whole and not was_whole:
                # Absence can be reported from now on.
                cluster.report_all = True
            ended = cluster.causes.update(seen.locked, seen.usable)
            return ended or cluster.report_all or any(_news(cluster))

    def unreachable(self, name: str) -> None:
        """Record that a cluster didn't answer."""
        with self._lock:
            if name in self._clusters:
                self._clusters[name].causes.unreachable()

    def forget(self, name: str) -> None:
        """Drop what is known of a cluster: another worker carries its agents."""
        with self._lock:
            self._clusters.pop(name, None)

    def publish_all(self) -> None:
        """Publish everything the next time, for a service that has just started."""
        with self._lock:
            for cluster in self._clusters.values():
                cluster.report_all = True

    def everything(self, name: str) -> VmStates | None:
        """Return all VMs of a cluster by its last refresh, in one report; None: it was forgotten,
        as another worker carries its agents."""
        with self._lock:
            cluster = self._clusters.get(name)
            if cluster is None:
                return None
            head = self._head(name, cluster)
        return replace(_everything(head, cluster), low=0, high=LAST, asked=True)

    def take(self, now: float) -> list[VmStates]:
        """Return what is to be published, in bounded messages. ``now``: monotonic seconds."""
        with self._lock:
            return [
                message
                for name, cluster in sorted(self._clusters.items())
                for message in self._messages(name, cluster, now)
            ]

    def _head(self, name: str, cluster: _Cluster) -> VmStates:
        return VmStates(
            worker=self._worker,
            cluster=name,
            seen_at=cluster.seen_at,
            nodes=cluster.nodes,
            whole=cluster.whole,
            asked=False,
        )

    def _messages(self, name: str, cluster: _Cluster, now: float) -> Iterator[VmStates]:
        head = self._head(name, cluster)
        unlocked, eased = cluster.causes.take()
        for start in range(0, max(len(unlocked), bool(eased)), self._most):
            part = unlocked[start : start + self._most]
            yield replace(head, unlocked=part, eased=eased)
        if cluster.report_all:
            cluster.report_all = False
            # Also what is gone, or missing for the first time: the conductor may ignore this, too.
            vmids = {*cluster.now, *cluster.before, *cluster.reported}
            cluster.reported = {
                vmid: _Reported(cluster.here(vmid), now, twice=False) for vmid in vmids
            }
            yield from _everything(head, cluster).parts(self._most)
            return
        found: list[VmFacts] = []
        gone: list[int] = []
        for vmid in sorted({*_news(cluster), *_again(cluster, now)}):
            facts, reported = cluster.here(vmid), cluster.reported.get(vmid)
            twice = reported is not None and reported.facts == facts
            if facts is None:
                gone.append(vmid)
            else:
                found.append(facts)
            if facts is None and twice:
                del cluster.reported[vmid]
            else:
                cluster.reported[vmid] = _Reported(facts, now, twice)
        yield from _some(head, found, gone, self._most)


def _news(cluster: _Cluster) -> Iterator[int]:
    """Yield VMs that differ from what was reported, including deleted ones."""
    for vmid, facts in cluster.now.items():
        reported = cluster.reported.get(vmid)
        if reported is None or reported.facts != facts:
            yield vmid
    for vmid, reported in cluster.reported.items():
        if reported.facts is not None and cluster.here(vmid) is None:
            yield vmid


def _again(cluster: _Cluster, now: float) -> Iterator[int]:
    for vmid, reported in cluster.reported.items():
        due = not reported.twice and now - reported.at >= REPEAT_SECONDS
        if due and cluster.here(vmid) == reported.facts:
            yield vmid


def _everything(head: VmStates, cluster: _Cluster) -> VmStates:
    """Return a report of all VMs."""
    here = [cluster.here(vmid) for vmid in sorted({*cluster.now, *cluster.before})]
    return replace(head, vms=tuple(vm for vm in here if vm is not None))


def _some(head: VmStates, vms: list[VmFacts], gone: list[int], most: int) -> Iterator[VmStates]:
    for start in range(0, max(len(vms), len(gone)), most):
        yield replace(
            head, vms=tuple(vms[start : start + most]), gone=tuple(gone[start : start + most])
        )
