"""What the scheduler answers to "what if": nothing in it is claimed."""

from __future__ import annotations

from dataclasses import dataclass


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
