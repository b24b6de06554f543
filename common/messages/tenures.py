"""What workers and conductors say to each other of who carries which agents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from common import digits

#: between a worker's name and the number of its tenure
_MARK = "@"
_MOST = 2**63 - 1


@dataclass(frozen=True)
class Unit:
    """The agents that one worker carries at a time: those of a cluster's hosts, or of some."""

    name: str
    cluster: str
    nodes: tuple[str, ...] = ()
    """Where it is of some nodes, which; a worker of 1.0.0 doesn't name them."""

    def overlaps(self, other: Unit) -> bool:
        """Return whether two units of a cluster have a node in common, as far as it is known."""
        is_whole = self.cluster in (self.name, other.name)
        return is_whole or not set(self.nodes).isdisjoint(other.nodes)


@dataclass(frozen=True)
class Claim:
    """A worker's claim to units, which it repeats to keep them."""

    worker: str
    process: str
    """Identifies the process: another one of the same name has another."""
    machine: str
    """Where no two processes of one name run at the same time; empty: it isn't known."""
    tenure: int
    """The number of its tenure; 0: it begins a new one."""
    units: tuple[Unit, ...]
    version: str = ""
    """The worker's release."""


@dataclass(frozen=True)
class Granted:
    """The answer to a claim."""

    tenure: int
    """The number of the worker's tenure; 0: another process of its name is active."""
    seconds: float
    """How long the worker holds the units, counted from before it sent the claim."""
    held: tuple[str, ...] = ()
    """The units that it holds, by name."""
    holders: Mapping[str, str] = field(default_factory=dict)
    """The workers that hold the others, by the units' names."""


def unit(cluster: str, nodes: Iterable[str] = ()) -> Unit:
    """Return the unit of a cluster's hosts, or of those of some of its nodes.

    Workers with the same configuration claim the same unit.
    """
    some = tuple(sorted(nodes))
    if not some:
        return Unit(cluster, cluster)
    digest = hashlib.sha256(",".join(some).encode()).hexdigest()[:16]
    return Unit(f"{cluster[:200]}/{digest}", cluster, some)


def address(worker: str, tenure: int) -> str:
    """Return how commands name a worker in one of its tenures."""
    return f"{worker}{_MARK}{tenure}"


def worker_of(name: str) -> str:
    """Return the worker of an address: its name on the message bus."""
    return name.rpartition(_MARK)[0] or name


def number_of(name: str) -> int:
    """Return the number of the tenure in an address; 0: it names a worker alone."""
    number = name.rpartition(_MARK)[2] if has_tenure(name) else ""
    return digits.number(number, _MOST) or 0


def has_tenure(name: str) -> bool:
    """Return whether it is an address, and not a worker's name alone."""
    return _MARK in name
