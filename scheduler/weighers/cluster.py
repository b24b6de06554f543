"""Prefer hosts by the state of all hosts: these scores depend on the other hosts."""

from __future__ import annotations

import functools
from collections import Counter

import numpy as np

from common.messages.scheduling import RequestSpec
from scheduler.columnar.forms import weighing_together
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.exhausted import CAPACITIES
from scheduler.hosts.host import Host
from scheduler.hosts.host_states import Floats
from scheduler.weighers import balance


@weighing_together
def cluster_score(columns: HostColumns, request: RequestSpec) -> Floats:
    """Return the negative score after the request: ``scheduler.weighers.balance``."""
    return -balance.cost_of(columns, request)


def _cluster(host: Host) -> str:
    return host.facts.cluster


@functools.partial(weighing_together, counting=("MEMORY_MB",))
def cluster_spread(columns: HostColumns, request: RequestSpec) -> Floats:
    """Return the free share of the memory of the host's whole cluster.

    Hosts that are no candidates count too; one without numbers from placement counts as full.
    """
    free: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for part in (columns, columns.others) if columns.others is not None else (columns,):
        counted = part.capacity("MEMORY_MB")
        capacity = np.where(counted > 0, counted, part.measure(CAPACITIES["MEMORY_MB"])).astype(
            np.int64
        )
        free.update(part.sums(_cluster, part.free("MEMORY_MB")))
        there.update(part.sums(_cluster, capacity))
    return columns.each(_cluster, lambda name: free[name] / max(there[name], 1))
