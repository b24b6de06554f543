"""What the scheduler answers to "what if": nothing in it is claimed."""

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
    """What keeps it from more: a resource class, or the reason of the filter that refuses it."""


@dataclass(frozen=True)
class Capacity:
    """How many servers of one kind would still fit, host by host."""

    fits: tuple[Fit, ...]
    """Most roomy first."""
    total: int


@dataclass(frozen=True)
class Movable:
    """A server that may be moved."""

    request: RequestSpec
    """What it asks of a host; its group without itself."""
    name: str
    host: str


@dataclass(frozen=True)
class Move:
    """A live migration that is proposed."""

    server_uuid: str
    name: str
    source: str
    target: str
    memory_mib: int
    disk_gib: int
    """What of its disk has to be copied: nothing on a storage that both hosts share."""
    gain: float
    """What it takes off the score."""


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
    """Servers that were looked at."""
    pinned: tuple[Pinned, ...] = ()
    """Those of them that can't be migrated."""
