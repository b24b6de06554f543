"""What the agents know of their hosts and storages, for the metrics."""

from __future__ import annotations

from collections.abc import Iterator

from common.capacity import offer
from common.messages.facts import HostFacts
from common.metrics import table
from common.metrics.instruments import Labels, Samples
from compute.observed.facts import HostFactsCache

_MIB, _GIB = 1 << 20, 1 << 30
_UNITS = (
    ("VCPU", "vcpus", 1),
    ("MEMORY_MB", "memory_bytes", _MIB),
    ("DISK_GB", "disk_bytes", _GIB),
)


class HostMetrics:
    """Reads the last facts at each scrape; of no hosts if there are more than `most`."""

    def __init__(self, facts: HostFactsCache, most: int) -> None:
        self._facts, self._most = facts, most
        table.HOST_HEALTHY.watch(self._healthy)
        table.HOST_CAPACITY.watch(self._capacity)
        table.HOST_USED.watch(self._used)
        table.STORAGE_ACTIVE.watch(self._active)
        table.STORAGE_BYTES.watch(self._bytes)

    def _hosts(self) -> list[HostFacts]:
        hosts = self._facts.all()
        return hosts if len(hosts) <= self._most else []

    def _healthy(self) -> Samples:
        return {
            (one.cluster, one.host): float(one.online and one.healthy) for one in self._hosts()
        }

    def _capacity(self) -> Samples:
        return {
            (one.cluster, one.host, name): float(offer(one, of_class).capacity * unit)
            for one in self._hosts()
            for of_class, name, unit in _UNITS
        }

    def _used(self) -> Samples:
        return {key: value for one in self._hosts() for key, value in _used(one)}

    def _active(self) -> Samples:
        # A node that is away says nothing of its storages.
        return {
            (one.cluster, one.host, storage.name): float(storage.active)
            for one in self._hosts()
            if one.online
            for storage in one.storages
        }

    def _bytes(self) -> Samples:
        return {
            (one.cluster, one.host, storage.name, kind): float(gib * _GIB)
            for one in self._hosts()
            for storage in one.storages
            for kind, gib in (("total", storage.total_gib), ("available", storage.available_gib))
        }


def _used(facts: HostFacts) -> Iterator[tuple[Labels, float]]:
    where = (facts.cluster, facts.host)
    yield (*where, "vcpus"), round(facts.cpu_load * facts.vcpus, 3)
    yield (*where, "memory_bytes"), float(facts.memory_used_mib * _MIB)
    yield (*where, "disk_bytes"), float(facts.disk_used_gib * _GIB)
