"""Measurements of servers, hosts and storages over a period, as their hypervisor recorded them."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

Values = tuple[float | None, ...]


class Period(enum.StrEnum):
    """How far back."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"

    @property
    def seconds(self) -> int:
        """Its length; a month has 30 days."""
        return _LENGTHS[self][0]

    @property
    def resolution_seconds(self) -> int:
        """The length of an interval, unless the hypervisor records longer ones."""
        return _LENGTHS[self][1]


_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
#: at most 183 points each
_LENGTHS: Mapping[str, tuple[int, int]] = {
    "hour": (_HOUR, _MINUTE),
    "day": (_DAY, 10 * _MINUTE),
    "week": (7 * _DAY, _HOUR),
    "month": (30 * _DAY, 4 * _HOUR),
    "year": (365 * _DAY, 2 * _DAY),
}


class Unit(enum.StrEnum):
    """What a value counts."""

    PERCENT = "percent"
    COUNT = "count"
    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes_per_second"
    LOAD = "processes"


@dataclass(frozen=True)
class Metric:
    """What is measured."""

    name: str
    unit: Unit
    text: str
    """For people; without a full stop."""


def _metrics(*rows: tuple[str, Unit, str]) -> Mapping[str, Metric]:
    return MappingProxyType({row[0]: Metric(*row) for row in rows})


_RATES = (
    ("network_in", Unit.BYTES_PER_SECOND, "Received from the network"),
    ("network_out", Unit.BYTES_PER_SECOND, "Sent to the network"),
)
_PRESSURE = (
    ("cpu_pressure", Unit.PERCENT, "Time in which some process waited for a processor"),
    ("memory_pressure", Unit.PERCENT, "Time in which some process waited for memory"),
    ("disk_pressure", Unit.PERCENT, "Time in which some process waited for a disk"),
)
#: by name, in the order in which they are shown
OF_SERVER = _metrics(
    ("cpu", Unit.PERCENT, "Use of all its processors together"),
    ("vcpus", Unit.COUNT, "Processors"),
    ("memory_used", Unit.BYTES, "Memory that the guest uses"),
    ("memory", Unit.BYTES, "Memory"),
    ("memory_of_host", Unit.BYTES, "Memory of the host that the server uses"),
    *_RATES,
    ("disk_read", Unit.BYTES_PER_SECOND, "Read from its disks"),
    ("disk_written", Unit.BYTES_PER_SECOND, "Written to its disks"),
    *_PRESSURE,
)
OF_HOST = _metrics(
    ("cpu", Unit.PERCENT, "Use of all its processors together"),
    ("cpus", Unit.COUNT, "Processors"),
    ("io_wait", Unit.PERCENT, "Time in which processors waited for disks"),
    ("load", Unit.LOAD, "Load average of a minute"),
    ("memory_used", Unit.BYTES, "Memory in use"),
    ("memory", Unit.BYTES, "Memory"),
    ("memory_available", Unit.BYTES, "Memory that new processes could get"),
    ("swap_used", Unit.BYTES, "Swap space in use"),
    ("swap", Unit.BYTES, "Swap space"),
    ("root_used", Unit.BYTES, "Used of the root file system"),
    ("root", Unit.BYTES, "Size of the root file system"),
    *_RATES,
    *_PRESSURE,
)
OF_STORAGE = _metrics(
    ("used", Unit.BYTES, "Used of the storage"),
    ("total", Unit.BYTES, "Size of the storage"),
)


@dataclass(frozen=True)
class Measured:
    """The values of a period."""

    period: Period
    resolution_seconds: int
    """The length of an interval; the newest may be shorter."""
    read_at: datetime.datetime
    """When the hypervisor was asked; later questions of the same minute get the same answer."""
    times: tuple[int, ...] = ()
    """The ends of the intervals in seconds since 1970, ascending."""
    values: Mapping[str, Values] = field(default_factory=dict)
    """The mean of each interval by the metric's name, of all metrics that the hypervisor
    records; None: not known, as while a server is off."""
