"""The RPC surface of the scheduler: one method a row."""

from __future__ import annotations

from typing import Protocol

from common.context import RequestContext
from common.messages.scheduling import Alternate, Decision, RequestSpec
from scheduler.messages import Capacity, Movable, Rebalancing


class SchedulerRpc(Protocol):
    """Topic ``scheduler``. All but the last method are calls, and raise Unavailable when the
    scheduler or placement doesn't answer, or has just started."""

    def select(
        self, ctxt: RequestContext, request: RequestSpec, alternates: tuple[Alternate, ...]
    ) -> Decision:
        """Choose a host and claim it in placement.

        With ``alternates`` of an earlier decision these are tried first, in order. ``host`` of
        the answer is None when no host would do; then nothing is claimed and ``reason`` says why.
        """

    def select_many(
        self, ctxt: RequestContext, requests: tuple[RequestSpec, ...]
    ) -> list[Decision]:
        """Choose hosts for servers that are alike in one pass, and claim them together.

        One decision for each request, in order, as ``select`` answers it; of one create only the
        first has every detail. Where it raises, some may be claimed.
        """

    def preview(
        self, ctxt: RequestContext, requests: tuple[RequestSpec, ...], without: tuple[str, ...]
    ) -> list[Decision]:
        """Return where these servers would go, one after the other, if they were created now.

        Hosts in ``without`` are ignored. Nothing is claimed.
        """

    def capacity(
        self, ctxt: RequestContext, request: RequestSpec, without: tuple[str, ...]
    ) -> Capacity:
        """Return how many more servers like the request would fit, by host, and what limits them.

        Hosts in ``without`` are ignored.
        """

    def rebalance(
        self, ctxt: RequestContext, servers: tuple[Movable, ...], limit: int
    ) -> Rebalancing:
        """Return at most ``limit`` moves that would fill the hosts more evenly; nothing moves."""

    def note_failure(self, ctxt: RequestContext, host: str) -> None:
        """Report that a build failed on a host. A cast to every scheduler."""
