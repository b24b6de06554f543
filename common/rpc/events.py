"""The events that services publish to each other: one protocol per topic.

All are casts but a few questions, and the receivers implement the protocols. Agents and schedulers
know the conductor only by these events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Protocol

from common import rpc
from common.context import RequestContext
from common.messages.facts import Heartbeat, VmStates
from common.messages.guests import GuestOwner
from common.messages.health import GuestCheck, GuestHealth
from common.messages.reports import Report, Working
from common.messages.tenures import Claim, Granted
from common.messages.topics import ANNOUNCE_TOPIC, CONDUCTOR_EVENTS_TOPIC, HOST_FACTS_TOPIC
from common.resources.aggregates import AllAggregates, Ratios
from common.rpc.signatures import Unreadable
from common.rpc.typed import TypedClient

if TYPE_CHECKING:
    from common.rpc.messaging import oslo_messaging


class ConductorEvents(Protocol):
    """Events for one conductor, from agents and schedulers."""

    def alive(self, ctxt: RequestContext, binary: str, host: str, version: str = "") -> None:
        """Report that a conductor or scheduler, of a release, consumes its messages."""

    def heartbeat(self, ctxt: RequestContext, heartbeat: Heartbeat) -> None:
        """Report that a worker consumes its messages, with its hosts and operations, whose leases
        are renewed."""

    def report(
        self, ctxt: RequestContext, reports: Annotated[list[Report], Unreadable.LEFT_OUT]
    ) -> None:
        """Report steps and outcomes of operations, which are passed to their flows."""

    def claim_agents(self, ctxt: RequestContext, claim: Claim) -> Granted:
        """Claim the agents of hosts for a worker, or keep them. A call.

        What a former worker of them had is carried on.
        """

    def release_agents(self, ctxt: RequestContext, worker: str) -> None:
        """Give up all that a worker, by its address, carries: it has stopped in order."""

    def may_undo(self, ctxt: RequestContext, worker: str, working: Working) -> bool:
        """Ask whether a worker still has this attempt, so that it may undo it. A call.

        If it has, the attempt's lease is renewed.
        """

    def may_start(
        self, ctxt: RequestContext, worker: str, working: list[Working]
    ) -> list[Working]:
        """Return those of a worker's attempts whose VMs it may start. A call.

        From then on such an attempt is not left for one on another host.
        """

    def owners(self, ctxt: RequestContext, worker: str) -> list[GuestOwner]:
        """Ask whose the VMs on a worker's hosts are. A call."""

    def health_checks(self, ctxt: RequestContext, worker: str) -> list[GuestCheck]:
        """Ask which members of groups on a worker's hosts are to be checked. A call."""

    def report_health(self, ctxt: RequestContext, worker: str, found: list[GuestHealth]) -> None:
        """Report what the checks of members say, where that has changed. A call."""

    def time(self, ctxt: RequestContext) -> float:
        """Return the time of the database's clock, in seconds since 1970. A call.

        Raises Unavailable if the conductor doesn't know it yet.
        """

    def vm_states(self, ctxt: RequestContext, seen: VmStates) -> None:
        """Report VMs of one cluster as they were seen, if no other worker has taken it over."""

    def publish_aggregates(self, ctxt: RequestContext) -> None:
        """Ask for the aggregates: a scheduler or worker starts."""


class HostEvents(Protocol):
    """Events for every scheduler."""

    def update_hosts(self, ctxt: RequestContext, heartbeat: Heartbeat) -> None:
        """Publish a worker's hosts."""

    def update_aggregates(self, ctxt: RequestContext, settings: AllAggregates) -> None:
        """Publish all aggregates, and which hosts are disabled, from the conductor."""


class WorkerEvents(Protocol):
    """Events for every compute worker."""

    def announce(self, ctxt: RequestContext) -> None:
        """Ask for all facts: a scheduler or conductor starts."""

    def update_ratios(self, ctxt: RequestContext, ratios: Ratios) -> None:
        """Publish the allocation ratios of all aggregates, from the conductor."""


def to_conductor(
    transport: oslo_messaging.Transport, *, repeats: bool = False, seconds: float | None = None
) -> TypedClient[ConductorEvents]:
    """Return a client of any one conductor, whose calls wait for so long; ``repeats``: as
    ``TypedClient`` says."""
    client = rpc.Client(transport, CONDUCTOR_EVENTS_TOPIC)
    return TypedClient(client, repeats=repeats, timeout_seconds=seconds)


def to_schedulers(transport: oslo_messaging.Transport) -> TypedClient[HostEvents]:
    """Return a client of all schedulers."""
    return TypedClient[HostEvents](rpc.Client(transport, HOST_FACTS_TOPIC)).to_all()


def to_workers(transport: oslo_messaging.Transport) -> TypedClient[WorkerEvents]:
    """Return a client of all compute workers."""
    return TypedClient[WorkerEvents](rpc.Client(transport, ANNOUNCE_TOPIC)).to_all()
