"""The scheduler's RPC endpoints."""

from __future__ import annotations

from collections.abc import Callable

from common import clock
from common.context import RequestContext
from common.errors import Unavailable
from common.messages.facts import Heartbeat
from common.messages.scheduling import Alternate, Decision, RequestSpec
from common.resources.aggregates import AllAggregates
from common.resources.states import ResourceType
from common.rpc import senders
from scheduler import measured
from scheduler.dry_run import DryRun
from scheduler.hosts.reported import HostTable
from scheduler.messages import Capacity, Movable, Rebalancing
from scheduler.select import Decider


class SchedulerManager:
    """Endpoint of the ``scheduler`` topic: ``rpc_api.SchedulerRpc``."""

    def __init__(
        self,
        decider: Decider,
        dry_run: DryRun,
        table: HostTable,
        ask: Callable[[RequestContext], None],
    ) -> None:
        """``ask`` asks the conductor for the aggregates."""
        self._decider = decider
        self._dry_run = dry_run
        self._table = table
        self._ask = ask

    def select(
        self, ctxt: RequestContext, request: RequestSpec, alternates: tuple[Alternate, ...]
    ) -> Decision:
        ctxt.about(ResourceType.SERVER, request.server_uuid)
        self._check_ready(ctxt)
        with measured.deciding(1):
            decision = self._decider.decide(request, alternates)
        measured.decided([decision])
        return decision

    def select_many(
        self, ctxt: RequestContext, requests: tuple[RequestSpec, ...]
    ) -> list[Decision]:
        self._check_ready(ctxt)
        with measured.deciding(len(requests)):
            decisions = self._decider.decide_many(requests)
        measured.decided(decisions)
        return decisions

    def preview(
        self, ctxt: RequestContext, requests: tuple[RequestSpec, ...], without: tuple[str, ...]
    ) -> list[Decision]:
        self._check_ready(ctxt)
        return self._dry_run.place(requests, without)

    def capacity(
        self, ctxt: RequestContext, request: RequestSpec, without: tuple[str, ...]
    ) -> Capacity:
        self._check_ready(ctxt)
        return self._dry_run.capacity(request, without)

    def rebalance(
        self, ctxt: RequestContext, servers: tuple[Movable, ...], limit: int
    ) -> Rebalancing:
        self._check_ready(ctxt)
        return self._dry_run.rebalance(servers, limit)

    def note_failure(self, ctxt: RequestContext, host: str) -> None:
        self._table.note_failure(host, clock.utcnow())

    def _check_ready(self, ctxt: RequestContext) -> None:
        """Raise Unavailable until hosts and aggregates were received after the start.

        Without them a decision would find no host, or ignore zones and hosts kept for projects.
        """
        if not self._table.knows_aggregates:
            self._ask(ctxt)
            raise Unavailable("The scheduler has just started and doesn't know the aggregates.")
        if not self._table.knows_hosts:
            raise Unavailable("The scheduler has just started and knows of no host yet.")


class HostFactsManager:
    """Endpoint of the ``host_facts`` topic: ``common.rpc.events.HostEvents``."""

    def __init__(self, table: HostTable) -> None:
        self._table = table

    def update_hosts(self, ctxt: RequestContext, heartbeat: Heartbeat) -> None:
        senders.check_worker(ctxt.sender, heartbeat.worker)
        self._table.update(heartbeat)

    def update_aggregates(self, ctxt: RequestContext, settings: AllAggregates) -> None:
        self._table.update_aggregates(settings)
