"""What services publish to each other, unasked: one protocol a topic, implemented by who listens.

All are casts. Agents and schedulers know the conductor by these events alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from common import rpc
from common.aggregates import AllAggregates, Ratios
from common.context import RequestContext
from common.messages.facts import Heartbeat, VmStates
from common.messages.reports import Report
from common.messages.topics import ANNOUNCE_TOPIC, CONDUCTOR_TOPIC, HOST_FACTS_TOPIC
from common.typed_rpc import TypedClient

if TYPE_CHECKING:
    # Only for its types: common.rpc must be the first to import it.
    import oslo_messaging


class ConductorEvents(Protocol):
    """To one conductor, from agents and schedulers."""

    def alive(self, ctxt: RequestContext, binary: str, host: str) -> None:
        """A conductor or scheduler consumes its messages."""

    def heartbeat(self, ctxt: RequestContext, heartbeat: Heartbeat) -> None:
        """A compute worker consumes its messages; its hosts, and the operations it works on."""

    def report(self, ctxt: RequestContext, reports: list[Report]) -> None:
        """Steps and outcomes of operations."""

    def vm_states(self, ctxt: RequestContext, seen: VmStates) -> None:
        """VMs of one cluster as they were seen."""

    def publish_aggregates(self, ctxt: RequestContext) -> None:
        """A scheduler or worker starts: it needs the aggregates."""


class HostEvents(Protocol):
    """To every scheduler."""

    def update_hosts(self, ctxt: RequestContext, heartbeat: Heartbeat) -> None:
        """A worker's hosts, from the worker."""

    def update_aggregates(self, ctxt: RequestContext, told: AllAggregates) -> None:
        """All aggregates, and which hosts are disabled, from the conductor."""


class WorkerEvents(Protocol):
    """To every compute worker."""

    def announce(self, ctxt: RequestContext) -> None:
        """A scheduler or conductor starts: it needs all facts."""

    def update_ratios(self, ctxt: RequestContext, ratios: Ratios) -> None:
        """The allocation ratios of all aggregates, from the conductor."""


def to_conductor(transport: oslo_messaging.Transport) -> TypedClient[ConductorEvents]:
    """Return a client of whichever conductor takes an event."""
    return TypedClient(rpc.Client(transport, CONDUCTOR_TOPIC))


def to_schedulers(transport: oslo_messaging.Transport) -> TypedClient[HostEvents]:
    """Return a client of all schedulers."""
    return TypedClient[HostEvents](rpc.Client(transport, HOST_FACTS_TOPIC)).to_all()


def to_workers(transport: oslo_messaging.Transport) -> TypedClient[WorkerEvents]:
    """Return a client of all compute workers."""
    return TypedClient[WorkerEvents](rpc.Client(transport, ANNOUNCE_TOPIC)).to_all()
