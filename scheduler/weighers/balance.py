"""How evenly a cloud is filled: the score of the mode ``cluster-score``, of its weigher, and of
the rebalancer.

For one resource class it is the variance of the hosts' allocated shares, weighted by their
capacity; the score is the mean over processors and memory. 0: every host has the same share
allocated. Less is better.
"""

from __future__ import annotations

import numpy as np

from common.messages.scheduling import RequestSpec
from scheduler.filters.resources import wanted
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host_states import Floats

CLASSES = ("VCPU", "MEMORY_MB")


def score(columns: HostColumns) -> float:
    """Return the score of the hosts as they are."""
    return float(np.mean([_variance(columns, name) for name in CLASSES]))


def _variance(columns: HostColumns, name: str) -> float:
    there, used = _counts(columns, name)
    total = there.sum()
    if not total:
        return 0.0
    return float(max((used * used / there).sum() / total - (used.sum() / total) ** 2, 0.0))


def _counts(columns: HostColumns, name: str) -> tuple[Floats, Floats]:
    """Return capacity and allocated amount of the hosts that have any."""
    capacity = columns.capacity(name).astype(np.float64)
    used = capacity - columns.free(name)
    some = capacity > 0
    return capacity[some], used[some]


def cost_of(columns: HostColumns, request: RequestSpec) -> Floats:
    """Return by how much the score would be worse if the request were placed on each host.

    The growth of the mean share is left out, as it is the same for all hosts.
    """
    amounts, cost = wanted(request), np.zeros(len(columns))
    for name in CLASSES:
        capacity = columns.capacity(name).astype(np.float64)
        used, amount = capacity - columns.free(name), amounts.get(name, 0)
        added = amount * (2 * used + amount) / np.maximum(capacity, 1)
        cost += added / max(float(capacity.sum()), 1.0)
    return cost / len(CLASSES)


def relief(columns: HostColumns, request: RequestSpec, position: int) -> float:
    """Return by how much the score would be better if a host lost the request."""
    amounts, found = wanted(request), 0.0
    for name in CLASSES:
        capacity = columns.capacity(name)
        there, total = int(capacity[position]), int(capacity.sum())
        used, amount = there - int(columns.free(name)[position]), amounts.get(name, 0)
        if there:
            found += amount * (2 * used - amount) / there / total
    return found / len(CLASSES)
