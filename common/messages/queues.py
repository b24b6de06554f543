"""What runs and what waits in the queues of agents, as heartbeats report it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

#: the kinds of queues: operations that wait for a thread of the agent, or for the one before on
#: the same VM; and parts of running operations that wait for a storage
OPERATIONS, STORAGE = "operations", "storage"


@dataclass(frozen=True)
class Queue:
    """One queue as one host uses it, at one moment."""

    kind: str
    """``operations`` or ``storage``."""
    name: str
    """The storage's name, or the kind."""
    width: int
    """How many run at a time: for all hosts together, where it is shared."""
    shared: bool
    """Whether other hosts use it too: those of the same agent, or those that see the storage."""
    running: int = 0
    waiting: int = 0
    oldest_waiting_seconds: float | None = None
    """The longest wait of a waiting operation so far; None: none waits."""


@dataclass(frozen=True)
class Queues:
    """The queues of an agent's hosts."""

    idle: tuple[Queue, ...]
    """Those of each host that ``busy`` doesn't name: nothing runs or waits there."""
    busy: Mapping[str, tuple[Queue, ...]] = field(default_factory=dict)
    """{host: its queues}; storages with nothing to do are left out."""

    def of_host(self, host: str) -> tuple[Queue, ...]:
        """Return those of one host."""
        return self.busy.get(host, self.idle)

    def of(self, hosts: Collection[str]) -> Queues:
        """Return those of some hosts."""
        return Queues(self.idle, {host: self.busy[host] for host in hosts if host in self.busy})
