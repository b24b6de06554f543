"""The RPC surface of the scheduler: one method a row."""

from __future__ import annotations

from typing import Protocol

from common.context import RequestContext
from common.messages.scheduling import Alternate, Decision, RequestSpec
from scheduler.messages import Capacity, Movable, Rebalancing


class SchedulerRpc(Protocol):
    """Topic ``scheduler``. ``SchedulerClient`` documents the methods."""

    # Calls.
    def select(
        self, ctxt: RequestContext, request: RequestSpec, alternates: tuple[Alternate, ...]
    ) -> Decision: ...
    def select_many(
        self, ctxt: RequestContext, requests: tuple[RequestSpec, ...]
    ) -> list[Decision]: ...
    def preview(
        self, ctxt: RequestContext, requests: tuple[RequestSpec, ...], without: tuple[str, ...]
    ) -> list[Decision]: ...
    def capacity(
        self, ctxt: RequestContext, request: RequestSpec, without: tuple[str, ...]
    ) -> Capacity: ...
    def rebalance(
        self, ctxt: RequestContext, servers: tuple[Movable, ...], limit: int
    ) -> Rebalancing: ...

    # A cast to every scheduler.
    def note_failure(self, ctxt: RequestContext, host: str) -> None: ...
