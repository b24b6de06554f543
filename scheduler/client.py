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
    """Calls to any scheduler, or to that of this process."""

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
        """Choose a host and claim it in placement.

        With ``alternates`` of an earlier decision these are tried first, in order. ``host`` of
        the answer is None when no host would do; then nothing is claimed and ``reason`` says why.
        Raises Unavailable when the scheduler or placement doesn't answer.
        """
        return self._rpc.call(ctxt, SchedulerRpc.select, request=request, alternates=alternates)

    def select_many(
        self, ctxt: RequestContext, requests: tuple[RequestSpec, ...]
    ) -> list[Decision]:
        """Choose hosts for servers that are alike in one pass, and claim them together.

        One decision for each request, in order, as ``select`` answers it; of one create only the
        first has every detail. Raises Unavailable, and some may be claimed.
        """
        return self._rpc.call(ctxt, SchedulerRpc.select_many, requests=requests)

    def preview(
        self,
        ctxt: RequestContext,
        requests: tuple[RequestSpec, ...],
        without: tuple[str, ...] = (),
    ) -> list[Decision]:
        """Return where these servers would go, one after the other, if they were created now.

        Hosts in ``without`` are ignored. Nothing is claimed. Raises Unavailable.
        """
        return self._rpc.call(ctxt, SchedulerRpc.preview, requests=requests, without=without)

    def capacity(
        self, ctxt: RequestContext, request: RequestSpec, without: tuple[str, ...] = ()
    ) -> Capacity:
        """Return how many more servers like the request would fit, by host, and what limits them.

        Hosts in ``without`` are ignored. Raises Unavailable.
        """
        return self._rpc.call(ctxt, SchedulerRpc.capacity, request=request, without=without)

    def rebalance(
        self, ctxt: RequestContext, servers: tuple[Movable, ...], limit: int
    ) -> Rebalancing:
        """Return at most ``limit`` moves that would fill the hosts more evenly; nothing moves.

        Raises Unavailable.
        """
        return self._rpc.call(ctxt, SchedulerRpc.rebalance, servers=servers, limit=limit)

    def note_failure(self, ctxt: RequestContext, host: str) -> None:
        """Report to every scheduler that a build failed on a host."""
        self._all.cast(ctxt, SchedulerRpc.note_failure, host=host)

    def update_aggregates(self, ctxt: RequestContext, settings: AllAggregates) -> None:
        """Publish all aggregates to every scheduler."""
        self._everyone.cast(ctxt, HostEvents.update_aggregates, settings=settings)
