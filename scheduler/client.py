"""The RPC client of the scheduler: the only module that others import."""

from __future__ import annotations

from common import rpc
from common.context import RequestContext
from common.messages.scheduling import Alternate, Decision, RequestSpec
from common.messages.topics import SCHEDULER_TOPIC
from common.resources.aggregates import AllAggregates
from common.rpc import events
from common.rpc.events import HostEvents
from common.rpc.messaging import oslo_messaging
from common.rpc.typed import TypedClient
from scheduler.messages import Capacity, Movable, Rebalancing
from scheduler.rpc_api import SchedulerRpc


class SchedulerClient:
    """``SchedulerRpc`` and ``HostEvents`` of any scheduler, or of that of this process."""

    def __init__(
        self, transport: oslo_messaging.Transport, near: oslo_messaging.Transport | None = None
    ) -> None:
        """``near``: where the scheduler of this process listens; None: any of ``transport``."""
        self._rpc: TypedClient[SchedulerRpc] = TypedClient(
            rpc.Client(near or transport, SCHEDULER_TOPIC)
        )
        self._all: TypedClient[SchedulerRpc] = TypedClient(
            rpc.Client(transport, SCHEDULER_TOPIC)
        ).to_all()
        self._everyone = events.to_schedulers(transport)

    def select(
        self, ctxt: RequestContext, request: RequestSpec, alternates: tuple[Alternate, ...] = ()
    ) -> Decision:
        return self._rpc.call(ctxt, SchedulerRpc.select, request=request, alternates=alternates)

    def select_many(
        self, ctxt: RequestContext, requests: tuple[RequestSpec, ...]
    ) -> list[Decision]:
        return self._rpc.call(ctxt, SchedulerRpc.select_many, requests=requests)

    def preview(
        self,
        ctxt: RequestContext,
        requests: tuple[RequestSpec, ...],
        without: tuple[str, ...] = (),
    ) -> list[Decision]:
        return self._rpc.call(ctxt, SchedulerRpc.preview, requests=requests, without=without)

    def capacity(
        self, ctxt: RequestContext, request: RequestSpec, without: tuple[str, ...] = ()
    ) -> Capacity:
        return self._rpc.call(ctxt, SchedulerRpc.capacity, request=request, without=without)

    def rebalance(
        self, ctxt: RequestContext, servers: tuple[Movable, ...], limit: int
    ) -> Rebalancing:
        return self._rpc.call(ctxt, SchedulerRpc.rebalance, servers=servers, limit=limit)

    def note_failure(self, ctxt: RequestContext, host: str) -> None:
        self._all.cast(ctxt, SchedulerRpc.note_failure, host=host)

    def update_aggregates(self, ctxt: RequestContext, settings: AllAggregates) -> None:
        self._everyone.cast(ctxt, HostEvents.update_aggregates, settings=settings)
