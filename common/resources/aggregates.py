"""Host aggregates and the settings of administrators for hosts, as sent to schedulers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

ZONE = "availability_zone"
"""The metadata key that makes an aggregate an availability zone."""


@dataclass(frozen=True)
class AggregateFacts:
    """A group of hosts."""

    uuid: str
    name: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()


RATIOS = ("cpu_allocation_ratio", "ram_allocation_ratio", "disk_allocation_ratio")
"""Metadata keys that override the allocation ratios of the agents' configuration."""


@dataclass(frozen=True)
class AllAggregates:
    """All aggregates, and the settings of administrators for hosts.

    Of two, the one with the higher version is newer. New hosts don't change it.
    """

    version: int
    aggregates: tuple[AggregateFacts, ...] = ()
    hosts: tuple[str, ...] | None = None
    """Every compute host; None: not included in this message."""
    disabled: tuple[str, ...] = ()
    """Hosts that an administrator disabled."""
    forced_down: tuple[str, ...] = ()
    """Hosts that an administrator forced down."""
    cloud: str = ""
    """The ID of the cloud: whose uploads of images count."""


@dataclass(frozen=True)
class Ratios:
    """Allocation ratios of hosts. Of two messages the higher version is newer."""

    version: int
    hosts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Hosts with a ratio from an aggregate: {host: {one of ``RATIOS``: ratio}}."""


def ratios(settings: AllAggregates) -> Ratios:
    """Return the allocation ratios that aggregates set; of several the smallest, as in Nova.

    Values that are no number above 0 are ignored.
    """
    hosts: dict[str, dict[str, float]] = {}
    for aggregate in settings.aggregates:
        said = {name: _ratio(aggregate.metadata.get(name, "")) for name in RATIOS}
        for host in aggregate.hosts:
            for name, ratio in said.items():
                if ratio is not None:
                    mine = hosts.setdefault(host, {})
                    mine[name] = min(ratio, mine.get(name, ratio))
    return Ratios(settings.version, hosts)


def _ratio(text: str) -> float | None:
    try:
        ratio = float(text)
    except ValueError:
        return None
    return ratio if math.isfinite(ratio) and ratio > 0 else None
