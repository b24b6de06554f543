"""Host aggregates, as the conductor tells them to the schedulers."""

from __future__ import annotations

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


@dataclass(frozen=True)
class AllAggregates:
    """Every aggregate there is. Of two, the one with the higher version is newer."""

    version: int
    aggregates: tuple[AggregateFacts, ...] = ()
