"""Calls: dry runs: nothing is claimed or written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from common.context import RequestContext
from common.messages.scheduling import Decision
from conductor.rpc.servers.servers import CreateServers
from scheduler.messages import Capacity, Rebalancing


@dataclass(frozen=True)
class Evacuation:
    """A server of a host that is assumed to be lost, and where it would be moved."""

    server_uuid: str
    name: str
    decision: Decision
    kept: str = ""
    """Why it can't be moved while its node is lost; empty: it can."""


@dataclass(frozen=True)
class DrainStep:
    """A server of a host that would be drained."""

    server_uuid: str
    name: str
    way: str | None
    """``common.moving.Way``; None: it can't be moved."""
    target: str | None = None
    """Where it would go now; the scheduler decides again as it moves."""
    reason: str | None = None
    """Why it can't be moved, or has nowhere to go."""


class WhatIfRpc(Protocol):
    """Dry runs: nothing is claimed or written."""

    def preview_servers(
        self, ctxt: RequestContext, request: CreateServers, without: Sequence[str] = ()
    ) -> list[Decision]:
        """Return where the servers of a create would go now; nothing is claimed or written.

        Hosts in ``without`` are ignored. Raises as ``create_servers`` does for
        networks, and Unavailable while no scheduler answers.
        """

    def capacity(
        self, ctxt: RequestContext, request: CreateServers, without: Sequence[str] = ()
    ) -> Capacity:
        """Return how many more servers like those of a create would fit, host by host."""

    def evacuation(self, ctxt: RequestContext, host: str) -> list[Evacuation]:
        """Return where a host's servers would go if it died. Raises HostNotFound, Unavailable."""

    def rebalance(self, ctxt: RequestContext, limit: int) -> Rebalancing:
        """Return up to ``limit`` moves that fill hosts more evenly. Raises Unavailable."""

    def drain_plan(self, ctxt: RequestContext, host: str, *, live_only: bool) -> list[DrainStep]:
        """Return how a host's servers would leave it now, and which can't.

        Raises HostNotFound, Unavailable.
        """
