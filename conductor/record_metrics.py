"""The metrics of the record: what every conductor reports about the database when scraped.

A scrape gets the values that were read last. If they are older than ``[metrics] record_seconds``,
it also starts another read in the background. Without scrapes nothing is read.
"""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from common.errors import MicronovaError
from common.log import logger
from common.metrics import table
from common.metrics.instruments import Labels, Sampled, Samples
from common.more_hosts import More
from conductor.store.monitoring import Reader, Record
from conductor.store.transactions import Store

LOG = logger(__name__)

#: how long a first scrape waits for the first reading
FIRST_SECONDS = 10.0
_UNITS = {"vcpus": ("vcpus", 1), "memory_mib": ("memory_bytes", 1 << 20)} | {
    "disk_gib": ("disk_bytes", 1 << 30)
}


class RecordMetrics:
    """Reads the record for the scrapes of one conductor."""

    def __init__(self, store: Store, kept_seconds: float, down_seconds: float) -> None:
        self._reader, self._kept = Reader(store, down_seconds), kept_seconds
        self._one = threading.Lock()
        self._read_at = float("-inf")
        self._samples: Mapping[str, Samples] = {}
        self._first = threading.Event()
        self._reading = False
        self._parts = [_Part(self._of, one) for one in SHOWN]

    def _of(self, name: str) -> Samples:
        """Return the last values of a metric; the first scrape waits for them."""
        with self._one:
            if not self._reading and time.monotonic() - self._read_at >= self._kept:
                self._reading = True
                threading.Thread(target=self._read, name="record-metrics", daemon=True).start()
        self._first.wait(FIRST_SECONDS)
        return self._samples.get(name, {})

    def _read(self) -> None:
        found: Mapping[str, Samples] = {}
        try:
            found = samples(self._reader.read())
        except MicronovaError as error:
            LOG.warning("The metrics of the record can't be read: %s", error.message)
        except Exception:
            LOG.exception("The metrics of the record can't be read.")
        with self._one:
            # What can't be read any more isn't shown as if it were so now.
            self._samples = found
            self._read_at, self._reading = time.monotonic(), False
        self._first.set()


class _Part:
    """One metric of the record, as its table asks for it."""

    def __init__(self, of: Callable[[str], Samples], shown: Sampled) -> None:
        self._of, self._name = of, shown.name
        shown.watch(self.sample)

    def sample(self) -> Samples:
        """Return its values."""
        return self._of(self._name)


SHOWN = (
    table.RECORD_READ,
    table.SERVERS,
    table.HELD_SERVERS,
    table.RECORD_HELD,
    table.OPEN_OPERATIONS,
    table.OPEN_BY_ACTION,
    table.STUCK_OPERATIONS,
    table.OLDEST_OPERATION,
    table.WAITING_SERVERS,
    table.WAITING_RESOURCES,
    table.WAITING_SINCE,
    table.WAITING_SCOPES,
    table.WAITING_HOSTS,
    table.WAITING_TAKES,
    table.LEASES,
    table.FINDINGS,
    table.AUDIT_STARTED,
    table.AUDIT_FINISHED,
    table.SERVICES,
    table.VMIDS,
    table.CLUSTER_HOSTS,
    table.CLUSTER_CAPACITY,
    table.CLUSTER_LARGEST,
    table.CLUSTER_CLAIMED,
    table.CLUSTER_USED,
)


def samples(record: Record) -> dict[str, Samples]:
    """Return the values of every metric of the record. Pure."""
    counts = record.counts
    services = {(one, "up" if up else "down"): n for (one, up), n in counts.services.items()}
    found: dict[Sampled, Mapping[Any, float]] = {
        table.RECORD_READ: {(): record.read_at.timestamp()},
        table.SERVERS: _labelled(counts.servers),
        table.HELD_SERVERS: {(): counts.held_servers},
        table.RECORD_HELD: _moment(counts.record_held_at) or {(): 0.0},
        table.OPEN_OPERATIONS: _labelled(counts.operations),
        table.OPEN_BY_ACTION: record.operations.by_action,
        table.STUCK_OPERATIONS: _labelled(record.operations.stuck),
        table.OLDEST_OPERATION: _moment(counts.oldest_operation_at),
        table.WAITING_SERVERS: {(zone,): one.servers for zone, one in record.waiting.items()},
        table.WAITING_RESOURCES: {
            (zone, _UNITS[resource][0]): amount * _UNITS[resource][1]
            for zone, one in record.waiting.items()
            for resource, amount in one.needs.items()
        },
        table.WAITING_SINCE: {
            (zone,): one.since.timestamp() for zone, one in record.waiting.items()
        },
        table.WAITING_SCOPES: {
            (one.zone, one.flavor, one.traits): n for one, n in record.scopes.items()
        },
        table.WAITING_HOSTS: {_kind(one): one.hosts for one in record.more_hosts},
        table.WAITING_TAKES: {_kind(one): one.takes for one in record.more_hosts},
        table.LEASES: record.operations.leases,
        table.FINDINGS: counts.findings,
        table.AUDIT_STARTED: _moment(counts.audit_started_at),
        table.AUDIT_FINISHED: _moment(counts.audit_finished_at),
        table.SERVICES: services,
        table.VMIDS: counts.vmids,
        table.CLUSTER_HOSTS: {
            (name, state): n
            for name, one in record.clusters.items()
            for state, n in one.hosts.items()
        },
    }
    for shown, amounts in (
        (table.CLUSTER_CAPACITY, "capacity"),
        (table.CLUSTER_LARGEST, "largest"),
        (table.CLUSTER_CLAIMED, "claimed"),
        (table.CLUSTER_USED, "used"),
    ):
        found[shown] = {
            (name, _UNITS[resource][0]): amount * _UNITS[resource][1]
            for name, one in record.clusters.items()
            for resource, amount in getattr(one, amounts).items()
        }
    return {
        one.name: {_key(key): float(n) for key, n in got.items()} for one, got in found.items()
    }


def _kind(one: More) -> Labels:
    return one.kind.zone, one.kind.like, ",".join(sorted(one.kind.traits))


def _labelled(counts: Mapping[str, int]) -> dict[Labels, float]:
    return {(name,): count for name, count in counts.items()}


def _key(key: Any) -> Labels:
    return tuple(str(one) for one in key)


def _moment(at: datetime.datetime | None) -> dict[Labels, float]:
    return {} if at is None else {(): at.timestamp()}
