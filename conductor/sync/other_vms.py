"""Reads the interfaces of VMs that the record doesn't know, to reserve their addresses.

Where the record may be older than a cluster, its agents are asked for all VMs first. Only a look
that begins after the question counts: what was seen before, and may come late, lacks the VMs that
were made since then. It doesn't count either while an agent carries out what the record has lost,
as after a fail-over to a replica that was behind: that may be a build.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable

from common.context import internal
from common.errors import Unavailable
from common.log import logger
from common.messages.facts import OtherVm, VmStates
from common.messages.questions import Agent, LookAtAll, LookAtOthers
from conductor.cloud import Cloud
from conductor.store import restored
from conductor.store.networks import unknown_vms
from conductor.store.restored import Marked
from conductor.store.servers import vm_states
from conductor.store.transactions import Transaction

LOG = logger(__name__)

NAME = "other_vms"
SECONDS = 60.0
#: read in one turn; the next one follows at once
MOST = 200
#: after this time clusters that have not shown their VMs are asked once more, and all agents
AGAIN_SECONDS, PATIENCE_SECONDS = 2.0, 10.0
#: clusters that are looked at together
AT_ONCE = 16


class OtherVms:
    """Has an agent of each cluster read what is to be read, and stores it."""

    def __init__(self, cloud: Cloud, take: Callable[[VmStates], None]) -> None:
        """``take`` compares what agents see with the record."""
        self._cloud, self._take = cloud, take
        self._asked = time.monotonic()
        self._looking: set[str] = set()

    def look(self) -> float | None:
        """Read the next few of each cluster; return 0 if there may be more."""
        since = max(self._cloud.since, self._cloud.guard.since or self._cloud.since)
        with self._cloud.store.read() as connection:
            due = unknown_vms.due(connection, MOST)
            stale = unknown_vms.stale(connection, since)
        self._look_at_all(stale)
        done = [self._read(cluster, wanted) for cluster, wanted in due.items()]
        if not stale:
            self._cloud.guard.settle()
        if stale and time.monotonic() - self._asked > PATIENCE_SECONDS:
            self._asked = time.monotonic()
            self._cloud.compute.announce(internal())
        if due and all(done):
            self._cloud.wake()
            return 0.0
        if stale:
            return AGAIN_SECONDS
        return PATIENCE_SECONDS if due else None

    def _look_at_all(self, stale: list[str]) -> None:
        """Have clusters looked at; returns at once, as one that is away answers after a while."""
        ready = [one for one in stale if one not in self._looking]
        for cluster in ready[: AT_ONCE - len(self._looking)]:
            self._looking.add(cluster)
            name = f"conductor-look-{cluster}"
            threading.Thread(target=self._compare, args=(cluster,), name=name, daemon=True).start()

    def _compare(self, cluster: str) -> None:
        try:
            with self._cloud.store.read() as connection:
                down = self._cloud.down(connection)
                workers = vm_states.workers_in(connection, cluster, down)
            # Each carries out what it has got; each sees all VMs.
            seen = [
                self._cloud.compute.ask(internal(), Agent(one, cluster), LookAtAll())
                for one in workers
            ]
            if seen:
                known = {one for report in seen for one in report.operations}
                self._take(dataclasses.replace(seen[-1], operations=tuple(sorted(known))))
        except Unavailable as error:
            LOG.info("Cluster %s is not compared with the record yet: %s", cluster, error.message)
        except Exception:
            LOG.exception("Cluster %s was not compared with the record; trying again.", cluster)
        finally:
            self._looking.discard(cluster)

    def _read(self, cluster: str, wanted: list[OtherVm]) -> bool:
        with self._cloud.store.read() as connection:
            down = self._cloud.down(connection)
            worker = vm_states.worker_in(connection, cluster, None, down)
        if worker is None:
            return False
        try:
            read = self._cloud.compute.ask(
                internal(), Agent(worker, cluster), LookAtOthers(tuple(wanted))
            )
        except Unavailable as error:
            LOG.warning("Cluster %s: other VMs can't be read: %s", cluster, error.message)
            return False
        marked = [Marked(cluster, one.vmid, one.mark) for one in read if one.mark is not None]

        def work(connection: Transaction) -> bool:
            unknown_vms.keep(connection, cluster, read)
            return bool(marked) and restored.look(connection, marked)

        if self._cloud.store.run(work):
            self._cloud.guard.was_held()
        return True
