"""Capacity of exhausted hosts, which placement's candidates omit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from common import capacity
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.hosts.host_states import Measure
from scheduler.hosts.usage import Amounts

_Devices = tuple[tuple[str, int], ...]


def _measure(resource_class: str) -> Measure:
    return lambda host: capacity.offer(host.facts, resource_class).capacity


CAPACITIES: Mapping[str, Measure] = {
    name: _measure(name) for name in ("VCPU", "MEMORY_MB", "DISK_GB")
}
"""The capacity of a host by what its agent publishes, for the classes that every host has."""


def with_exhausted(columns: HostColumns, classes: Iterable[str]) -> HostColumns:
    """Return all hosts with the capacity of those that placement omitted, as fully used."""
    names = list(classes)
    draft = columns.draft(names)
    for name in names:
        draft.fill_up(name, _published(columns, name))
    return draft


def _published(columns: HostColumns, name: str) -> Amounts:
    measure = CAPACITIES.get(name)
    if measure is not None:
        return np.maximum(columns.measure(measure), 0).astype(np.int64)
    return columns.each(_devices, lambda there: capacity.devices(there, name)).astype(np.int64)


def _devices(host: Host) -> _Devices:
    return tuple(sorted(host.facts.devices.items()))
