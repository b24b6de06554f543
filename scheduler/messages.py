"""Answers to what-if questions: nothing in them is claimed."""

from __future__ import annotations

from dataclasses import dataclass

from common.messages.scheduling import RequestSpec


@dataclass(frozen=True)
class Fit:
    """How many servers of one kind a host would still take."""

    host: str
    availability_zone: str
    count: int
    limit: str
    """What prevents more: a resource class, or the reason of the filter that refuses."""


@dataclass(frozen=True)
class Capacity:
    """How many servers of one kind would still fit, host by host."""

    fits: tuple[Fit, ...]
    """Hosts with most room first."""
    total: int


@dataclass(frozen=True)
class Movable:
    """A server that may be moved."""

    request: RequestSpec
    """Its request spec; its group without itself."""
    name: str
    host: str


@dataclass(frozen=True)
class Move:
    """A proposed live migration."""

    server_uuid: str
    name: str
    source: str
    target: str
    memory_mib: int
    disk_gib: int
    """The part of its disk to be copied: nothing on a storage that both hosts share."""
    gain: float
    """By how much it lowers the score."""


@dataclass(frozen=True)
class Pinned:
    """A server that can't leave its host, and why."""

    server_uuid: str
    name: str
    host: str
    reason: str


@dataclass(frozen=True)
class Rebalancing:
    """Moves that would fill the hosts more evenly, in order: ``scheduler.weighers.balance``."""

    score_before: float
    score_after: float
    moves: tuple[Move, ...]
    considered: int
    """Servers that were considered."""
    pinned: tuple[Pinned, ...] = ()
    """Those of them that can't be migrated."""
