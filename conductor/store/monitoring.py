"""What the record holds for the metrics, read in bulk; nothing is written."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from common import clock
from conductor.store.transactions import Store
from db.reads import metrics, monitoring
from db.reads.metrics import Metrics
from db.reads.monitoring import Cluster, Operations


@dataclass(frozen=True)
class Record:
    """Everything at one moment."""

    read_at: datetime.datetime
    counts: Metrics
    operations: Operations
    clusters: Mapping[str, Cluster]


def read(store: Store, down_seconds: float) -> Record:
    """Read it, in 11 statements; services that are silent for so long are down."""
    heard_since = clock.after(-down_seconds)
    with store.read() as connection:
        return Record(
            clock.utcnow(),
            metrics.read(connection, heard_since),
            monitoring.operations(connection),
            monitoring.clusters(connection, heard_since),
        )
