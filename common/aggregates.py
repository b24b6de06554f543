"""Host aggregates, and what administrators say of hosts, as schedulers are told of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

ZONE = "availability_zone"
"""The metadata that makes an aggregate a zone."""


@dataclass(frozen=True)
class AggregateFacts:
    """A group of hosts."""

    uuid: str
    name: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()


RATIOS = ("cpu_allocation_ratio", "ram_allocation_ratio", "disk_allocation_ratio")
"""Metadata that replaces what the agents' configuration says of overcommitting."""


@dataclass(frozen=True)
class AllAggregates:
    """Every aggregate there is, and how administrators have set the hosts.

    Of two, the one with the higher version is newer. Hosts that come don't change it.
    """

    version: int
    aggregates: tuple[AggregateFacts, ...] = ()
    hosts: tuple[str, ...] | None = None
    """Every compute host there is; None: it isn't told."""
    disabled: tuple[str, ...] = ()
    """Hosts that an administrator disabled."""
    forced_down: tuple[str, ...] = ()
    """Hosts that an administrator forced down."""


@dataclass(frozen=True)
class Ratios:
    """How much more than there is hosts may promise. Of two, the higher version is newer."""

    version: int
    hosts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Of hosts of which an aggregate says something: {host: {one of ``RATIOS``: ratio}}."""


def ratios(told: AllAggregates) -> Ratios:
    """What the aggregates say of overcommitting; of several the least, as Nova had it.

    What is no number above 0 says nothing.
    """
    hosts: dict[str, dict[str, float]] = {}
    for aggregate in told.aggregates:
        said = {name: _ratio(aggregate.metadata.get(name, "")) for name in RATIOS}
        for host in aggregate.hosts:
            for name, ratio in said.items():
                if ratio is not None:
                    mine = hosts.setdefault(host, {})
                    mine[name] = min(ratio, mine.get(name, ratio))
    return Ratios(told.version, hosts)


def _ratio(text: str) -> float | None:
    try:
        ratio = float(text)
    except ValueError:
        return None
    return ratio if math.isfinite(ratio) and ratio > 0 else None
