"""What the record holds for the metrics, read in bulk; nothing is written."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from common import clock
from common.errors import Unavailable
from conductor.store.transactions import Store
from db.reads import metrics, monitoring
from db.reads.metrics import Metrics
from db.reads.monitoring import Cluster, Clusters, Operations, Waiting


@dataclass(frozen=True)
class Record:
    """Everything at one moment."""

    read_at: datetime.datetime
    counts: Metrics
    operations: Operations
    clusters: Mapping[str, Cluster]
    waiting: Mapping[str, Waiting]
    """By zone."""


class Reader:
    """Reads it again and again; for one thread at a time."""

    def __init__(self, store: Store, down_seconds: float) -> None:
        self._store, self._down_seconds = store, down_seconds
        self._clusters = Clusters()

    def read(self) -> Record:
        """Read it, in 13 statements; services that are silent for so long are down.

        Raises Unavailable when the database doesn't answer.
        """
        up_since = clock.after(-self._down_seconds)
        try:
            with self._store.read() as connection:
                return Record(
                    clock.utcnow(),
                    metrics.read(connection, up_since),
                    monitoring.operations(connection),
                    self._clusters.read(connection, up_since),
                    monitoring.waiting(connection),
                )
        except sa.exc.DBAPIError as error:
            raise Unavailable(f"The database doesn't answer: {error.orig}") from error
