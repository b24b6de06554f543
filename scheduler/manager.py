"""The scheduler's RPC doors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common import clock, codec
from common.aggregates import AllAggregates
from common.context import RequestContext
from common.errors import Unavailable
from common.messages.facts import Heartbeat
from common.messages.scheduling import Alternate, Decision, RequestSpec
from scheduler.decide.dry_run import Trial
from scheduler.decide.select import Decider
from scheduler.hosts.reported import HostTable
from scheduler.messages import Capacity, Movable, Rebalancing


class SchedulerManager:
    """Topic ``scheduler``."""

    def __init__(
        self,
        decider: Decider,
        trial: Trial,
        table: HostTable,
        ask: Callable[[RequestContext], None],
    ) -> None:
        """``ask`` asks the conductor for the aggregates."""
        self._decider = decider
        self._trial = trial
        self._table = table
        self._ask = ask

    def select(
        self, ctxt: RequestContext, request: dict[str, Any], alternates: list[dict[str, Any]]
    ) -> Decision:
        """Choose and claim a host for one server."""
        ctxt.server_uuid = request["server_uuid"]
        self._check_ready(ctxt)
        return self._decider.decide(
            codec.load(RequestSpec, request),
            tuple(codec.load(Alternate, item) for item in alternates),
        )

    def select_many(self, ctxt: RequestContext, requests: list[dict[str, Any]]) -> list[Decision]:
        """Choose and claim hosts for the servers of one create."""
        self._check_ready(ctxt)
        return self._decider.decide_many([codec.load(RequestSpec, item) for item in requests])

    def preview(
        self, ctxt: RequestContext, requests: list[dict[str, Any]], without: list[str]
    ) -> list[Decision]:
        """Where servers would go; see ``SchedulerClient.preview``."""
        self._check_ready(ctxt)
        return self._trial.place([codec.load(RequestSpec, item) for item in requests], without)

    def capacity(
        self, ctxt: RequestContext, request: dict[str, Any], without: list[str]
    ) -> Capacity:
        """How many more servers would fit; see ``SchedulerClient.capacity``."""
        self._check_ready(ctxt)
        return self._trial.capacity(codec.load(RequestSpec, request), without)

    def rebalance(
        self, ctxt: RequestContext, servers: list[dict[str, Any]], limit: int
    ) -> Rebalancing:
        """Which servers would have to move; see ``SchedulerClient.rebalance``."""
        self._check_ready(ctxt)
        return self._trial.rebalance([codec.load(Movable, item) for item in servers], limit)

    def note_failure(self, ctxt: RequestContext, host: str) -> None:
        """A build failed on a host."""
        self._table.note_failure(host, clock.utcnow())

    def _check_ready(self, ctxt: RequestContext) -> None:
        """A scheduler that has just started must not say that there is no host; zones, and hosts
        that are kept for somebody, must not be overlooked."""
        if not self._table.knows_aggregates:
            self._ask(ctxt)
            raise Unavailable("The scheduler has just started and doesn't know the aggregates.")
        if not self._table.knows_hosts:
            raise Unavailable("The scheduler has just started and knows of no host yet.")


class HostFactsManager:
    """Topic ``host_facts``: what the agents tell everybody."""

    def __init__(self, table: HostTable) -> None:
        self._table = table

    def update_hosts(self, ctxt: RequestContext, heartbeat: dict[str, Any]) -> None:
        """Take over what a worker knows of its hosts."""
        self._table.update(codec.load(Heartbeat, heartbeat))

    def update_aggregates(self, ctxt: RequestContext, told: dict[str, Any]) -> None:
        """Take over the conductor's aggregates, and how hosts are set."""
        self._table.update_aggregates(codec.load(AllAggregates, told))
