"""Capacity of exhausted hosts, which placement's candidates omit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from common.guest.hardware import device_class
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.hosts.host_states import Measure
from scheduler.hosts.usage import Amounts

_OFFERED: Mapping[str, Measure] = {
    "VCPU": lambda host: (
        (host.facts.vcpus - host.facts.reserved_vcpus) * host.facts.cpu_allocation_ratio
    ),
    "MEMORY_MB": lambda host: (
        (host.facts.memory_mib - host.facts.reserved_memory_mib) * host.facts.ram_allocation_ratio
    ),
    "DISK_GB": lambda host: (
        (host.facts.disk_gib - host.facts.reserved_disk_gib) * host.facts.disk_allocation_ratio
    ),
}
"""As agents publish it: total, less what is reserved, times the ratio."""

_Devices = tuple[tuple[str, int], ...]


def with_exhausted(columns: HostColumns, classes: Iterable[str]) -> HostColumns:
    """Return all hosts with the capacity of those that placement omitted, as fully used."""
    names = list(classes)
    draft = columns.draft(names)
    for name in names:
        draft.fill_up(name, _offered(columns, name))
    return draft


def _offered(columns: HostColumns, name: str) -> Amounts:
    measure = _OFFERED.get(name)
    if measure is not None:
        return np.maximum(columns.measure(measure), 0).astype(np.int64)

    def count(there: _Devices) -> float:
        return sum(count for device, count in there if device_class(device) == name)

    return columns.each(_devices, count).astype(np.int64)


def _devices(host: Host) -> _Devices:
    return tuple(sorted(host.facts.devices.items()))
