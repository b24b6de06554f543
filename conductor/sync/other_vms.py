"""Reads the interfaces of VMs that the record doesn't know, to reserve their addresses.

Where the record may be older than a cluster, its agents are asked for all VMs first. Only a look
that begins after the question counts: an earlier report may arrive late, without the VMs that were
made since then. It doesn't count either while an agent carries out what the record has lost,
as after a fail-over to a replica that was behind: that may be a build.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from common import clock
from common.context import internal
from common.errors import Unavailable
from common.log import logger
from common.messages.facts import OtherVm, VmStates
from common.messages.questions import Agent, LookAtAll, LookAtOthers
from common.messages.tenures import worker_of
from conductor.cloud import Cloud
from conductor.store import restored
from conductor.store.networks import unknown_vms
from conductor.store.restored import Marked
from conductor.store.transactions import Transaction

LOG = logger(__name__)

NAME = "other_vms"
SECONDS = 60.0
#: read in one turn, which an agent may not answer: the next one follows at once
MOST = 50
#: after this time clusters that have not shown their VMs are asked once more; and all agents, as
#: those of a release that can't be asked; and it is seen whether clusters answer again
AGAIN_SECONDS, PATIENCE_SECONDS = 2.0, 10.0
#: clusters that are looked at together, and of them those of one worker
AT_ONCE, OF_ONE_WORKER = 16, 4
#: VMs that are compared in one transaction
VMS_AT_ONCE = 500


@dataclass(frozen=True)
class _Look:
    """A cluster that is looked at, by its workers: others carry it after a fail-over of agents,
    and are asked beside those that don't answer."""

    cluster: str
    workers: tuple[str, ...]

    @functools.cached_property
    def of(self) -> frozenset[str]:
        """The workers, whatever their tenure."""
        return frozenset(worker_of(one) for one in self.workers)


class OtherVms:
    """Has an agent of each cluster read what is to be read, and stores it."""

    def __init__(
        self,
        cloud: Cloud,
        take: Callable[[VmStates, datetime.datetime], None],
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """``take`` compares what agents saw after a moment with the record."""
        self._cloud, self._take, self._patience_seconds = cloud, take, patience_seconds
        self._announced = time.monotonic()
        self._lock = threading.Lock()
        self._looking: set[_Look] = set()
        self._asked: dict[str, float] = {}
        """When clusters were asked for all VMs last."""
        self._failed: dict[str, float] = {}
        """When clusters could not be read, which then doesn't delay the others."""

    def look(self) -> float | None:
        """Read the next few of each cluster; return 0 if there may be more."""
        since = max(self._cloud.since, self._cloud.guard.since or self._cloud.since)
        with self._cloud.store.read() as connection:
            answering = self._cloud.answering(connection)
            due = unknown_vms.due(connection, self._readable(answering), MOST)
            stale = unknown_vms.stale(connection, since)
            left = unknown_vms.open_clusters(connection, since)
        asked = [_Look(one, answering[one]) for one in stale if one in answering]
        self._look_at_all(asked)
        done = [self._read(one, answering[one], wanted) for one, wanted in due.items()]
        if not stale:
            self._cloud.guard.settle()
        if asked and time.monotonic() - self._announced > self._patience_seconds:
            self._announced = time.monotonic()
            self._cloud.compute.announce(internal())
        if any(done):
            self._cloud.wake()
            return 0.0
        if asked:
            return AGAIN_SECONDS
        return self._patience_seconds if left else None

    def _readable(self, answering: Collection[str]) -> list[str]:
        before = time.monotonic() - self._patience_seconds
        return [one for one in answering if self._failed.get(one, before) <= before]

    def _look_at_all(self, wanted: list[_Look]) -> None:
        """Have clusters looked at; returns at once, as an absent cluster answers after a while.

        Those that were asked last wait longest, and no worker is asked about many together: it
        needs its threads for commands.
        """
        for look in sorted(wanted, key=lambda one: self._asked.get(one.cluster, 0.0)):
            with self._lock:
                others = [one for one in self._looking if not one.of.isdisjoint(look.of)]
                full = len(others) >= OF_ONE_WORKER or len(self._looking) >= AT_ONCE
                if full or look in self._looking:
                    continue
                self._looking.add(look)
            self._asked[look.cluster] = time.monotonic()
            name = f"conductor-look-{look.cluster}"
            threading.Thread(target=self._compare, args=(look,), name=name, daemon=True).start()

    def _compare(self, look: _Look) -> None:
        cluster, began = look.cluster, clock.utcnow()
        try:
            # Each carries out what it has got; each sees all VMs.
            seen = [
                self._cloud.compute.ask(internal(), Agent(one, cluster), LookAtAll())
                for one in look.workers
            ]
            known = {one for report in seen for one in report.operations}
            whole = dataclasses.replace(seen[-1], operations=tuple(sorted(known)))
            for part in whole.parts(VMS_AT_ONCE):
                self._take(part, began)
        except Unavailable as error:
            LOG.info("Cluster %s is not compared with the record yet: %s", cluster, error.message)
        except Exception:
            LOG.exception("Cluster %s was not compared with the record; trying again.", cluster)
        finally:
            with self._lock:
                self._looking.discard(look)

    def _read(self, cluster: str, workers: Sequence[str], wanted: list[OtherVm]) -> bool:
        try:
            read = self._cloud.compute.ask(
                internal(), Agent(workers[0], cluster), LookAtOthers(tuple(wanted))
            )
        except Unavailable as error:
            LOG.warning("Cluster %s: other VMs can't be read: %s", cluster, error.message)
            self._failed[cluster] = time.monotonic()
            return False
        self._failed.pop(cluster, None)
        marked = [Marked(cluster, one.vmid, one.mark) for one in read if one.mark is not None]

        def work(connection: Transaction) -> bool:
            unknown_vms.keep(connection, cluster, read)
            return bool(marked) and restored.look(connection, marked)

        if self._cloud.store.run(work):
            self._cloud.guard.was_held()
        return True
