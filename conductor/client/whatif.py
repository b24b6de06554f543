"""Calls about dry runs."""

from __future__ import annotations

from common.context import RequestContext
from common.messages.scheduling import Decision
from conductor.client.base import Base
from conductor.messages import CreateServers, DrainStep, Evacuation
from conductor.rpc_api import WhatIfRpc
from scheduler.messages import Capacity, Rebalancing


class WhatIfCalls(Base):
    """See ``conductor.rpc_api.WhatIfRpc``."""

    def preview_servers(
        self, ctxt: RequestContext, request: CreateServers, without: tuple[str, ...] = ()
    ) -> list[Decision]:
        """Return where the servers of a create would go now; nothing is claimed or written.

        Hosts in ``without`` are ignored. Raises as ``create_servers`` does for
        networks, and Unavailable while no scheduler answers.
        """
        return self._rpc.call(
            ctxt, WhatIfRpc.preview_servers, request=request, without=list(without)
        )

    def capacity(
        self, ctxt: RequestContext, request: CreateServers, without: tuple[str, ...] = ()
    ) -> Capacity:
        """Return how many more servers like those of a create would fit, host by host."""
        return self._rpc.call(ctxt, WhatIfRpc.capacity, request=request, without=list(without))

    def evacuation(self, ctxt: RequestContext, host: str) -> list[Evacuation]:
        """Return where a host's servers would go if it died. Raises HostNotFound, Unavailable."""
        return self._rpc.call(ctxt, WhatIfRpc.evacuation, host=host)

    def rebalance(self, ctxt: RequestContext, limit: int) -> Rebalancing:
        """Return up to ``limit`` moves that fill hosts more evenly. Raises Unavailable."""
        return self._rpc.call(ctxt, WhatIfRpc.rebalance, limit=limit)

    def drain_plan(self, ctxt: RequestContext, host: str, *, live_only: bool) -> list[DrainStep]:
        """Return how a host's servers would leave it now, and which can't.

        Raises HostNotFound, Unavailable.
        """
        return self._rpc.call(ctxt, WhatIfRpc.drain_plan, host=host, live_only=live_only)
