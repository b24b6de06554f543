"""Gives out addresses and VLAN tags only after the VMs of each cluster were compared.

A database that was restored from a backup lacks servers that were made since. Their VMs still have
addresses, which no other server may get, on networks that no other project may share. The
comparison takes the first moments after the start of a conductor; requests wait for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from conductor.cloud import Cloud
from conductor.engine import awaited
from conductor.store.networks import unknown_vms
from conductor.store.networks.pools import ANYWHERE, Unsettled, Within
from conductor.store.networks.unknown_vms import EVERY
from conductor.store.transactions import Transaction

T = TypeVar("T")

#: so few that an attachment, which then waits for its own end, is answered while the API waits
WAIT_SECONDS = 8.0


class Settling:
    """Carries out transactions that take addresses, or VLAN tags."""

    def __init__(self, cloud: Cloud, wait_seconds: float = WAIT_SECONDS) -> None:
        self._cloud, self._wait_seconds = cloud, wait_seconds

    def run(self, work: Callable[[Transaction, Within], T]) -> T:
        """Run a transaction, which passes ``Within`` on to ``Pools``, and return its result.

        A cluster that doesn't answer, or has no live agent, is not waited for: it might never
        answer. Raises Unsettled if another one was not compared in time.
        """
        within = Within(EVERY, self._cloud.since)
        until = time.monotonic() + self._wait_seconds
        for _ in awaited.polls():
            try:
                return self._once(work, within)
            except Unsettled:
                if not self._answering():
                    within = ANYWHERE
                elif time.monotonic() >= until:
                    raise
        raise AssertionError("polls never end")

    def _once(self, work: Callable[[Transaction, Within], T], within: Within) -> T:
        return self._cloud.store.run(lambda c: work(c, within))

    def _answering(self) -> bool:
        """Return whether a cluster that isn't settled has an agent that will look at it."""
        with self._cloud.store.read() as connection:
            left = unknown_vms.open_clusters(connection, self._cloud.since)
            return not left.isdisjoint(self._cloud.answering(connection))
