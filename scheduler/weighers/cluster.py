"""Prefer hosts for the sake of the others: what these give depends on the whole fleet."""

from __future__ import annotations

import numpy as np

from common.messages.scheduling import Requested
from scheduler import balance
from scheduler.columnar import weighing_together
from scheduler.fleet import Fleet
from scheduler.known import Floats


@weighing_together
def cluster_score(fleet: Fleet, request: Requested) -> Floats:
    """Minus what the request would make of the score of the hosts; see ``scheduler.balance``."""
    return -balance.cost_of(fleet, request)


@weighing_together
def cluster_spread(fleet: Fleet, request: Requested) -> Floats:
    """What is free of the memory of the host's whole cluster, as a share of all of it."""
    clusters: dict[str, int] = {}
    free, capacity = fleet.free("MEMORY_MB"), fleet.capacity("MEMORY_MB")
    numbers = np.array(
        [clusters.setdefault(host.facts.cluster, len(clusters)) for host in fleet.known()],
        np.int64,
    )
    shares: Floats = np.bincount(numbers, free) / np.maximum(np.bincount(numbers, capacity), 1)
    return shares[numbers]
