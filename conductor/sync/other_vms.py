"""Reads the interfaces of VMs that the record doesn't know, to reserve their addresses."""

from __future__ import annotations

import time

from common.context import internal
from common.errors import Unavailable
from common.log import logger
from common.messages.facts import OtherVm
from common.messages.questions import Agent, LookAtOthers
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
#: after this time clusters that have not shown their VMs are asked once more
PATIENCE_SECONDS = 10.0


class OtherVms:
    """Has an agent of each cluster read what is to be read, and stores it."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._asked = time.monotonic()

    def look(self) -> float | None:
        """Read the next few of each cluster; return 0 if there may be more."""
        since = max(self._cloud.since, self._cloud.guard.since or self._cloud.since)
        with self._cloud.store.read() as connection:
            due = unknown_vms.due(connection, MOST)
            stale = unknown_vms.stale(connection, since)
        done = [self._read(cluster, wanted) for cluster, wanted in due.items()]
        if not stale:
            self._cloud.guard.settle()
        if stale and time.monotonic() - self._asked > PATIENCE_SECONDS:
            self._asked = time.monotonic()
            self._cloud.compute.announce(internal())
        if due and all(done):
            self._cloud.wake()
            return 0.0
        return PATIENCE_SECONDS if stale or due else None

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
