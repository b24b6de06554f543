"""What the record holds for the metrics, read in bulk; nothing is written."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from common import clock
from common.databases import mistakes
from common.errors import Unavailable
from common.more_hosts import More
from conductor.store.transactions import Store
from db.reads import metrics, monitoring
from db.reads.ledger import waiting
from db.reads.metrics import Metrics
from db.reads.monitoring import Cluster, Clusters, Operations, Scope, Waiting


@dataclass(frozen=True)
class Record:
    """Everything at one moment."""

    read_at: datetime.datetime
    counts: Metrics
    operations: Operations
    clusters: Mapping[str, Cluster]
    waiting: Mapping[str, Waiting]
    """By zone."""
    scopes: Mapping[Scope, int]
    """Those that wait for room."""
    more_hosts: Sequence[More]
    """What more hosts of each kind would do for them; empty: nobody waits."""


class Reader:
    """Reads it again and again; for one thread at a time."""

    def __init__(self, store: Store, down_seconds: float) -> None:
        self._store, self._down_seconds = store, down_seconds
        self._clusters = Clusters()

    def read(self) -> Record:
        """Read it, in 14 statements, and 16 while somebody waits for room.

        Services that are silent for so long are down. Raises Unavailable when the database doesn't
        answer.
        """
        up_since = clock.after(-self._down_seconds)
        try:
            with self._store.read() as connection:
                scopes = monitoring.waiting_scopes(connection)
                return Record(
                    clock.utcnow(),
                    metrics.read(connection, up_since),
                    monitoring.operations(connection),
                    self._clusters.read(connection, up_since),
                    monitoring.waiting(connection),
                    scopes,
                    self._more_hosts(connection) if scopes else (),
                )
        except sa.exc.DBAPIError as error:
            if mistakes.is_mistake(error):
                raise
            raise Unavailable(f"The database doesn't answer: {error.orig}") from error

    @staticmethod
    def _more_hosts(connection: sa.Connection) -> Sequence[More]:
        return waiting.more_hosts_for(connection, waiting.wanted(connection))
