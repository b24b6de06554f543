"""Calls about services, including the conductor that answers."""

from __future__ import annotations

from typing import Protocol

from common.context import RequestContext


class ServiceRpc(Protocol):
    """Services, including the conductor that answers."""

    def ping(self, ctxt: RequestContext) -> str:
        """Return the name of the conductor that answers. Raises Unavailable when none does."""

    def update_service(
        self,
        ctxt: RequestContext,
        service_uuid: str,
        *,
        disabled: bool | None = None,
        reason: str | None = None,
        forced_down: bool | None = None,
    ) -> None:
        """Enable, disable or force down a service; None: unchanged. Raises HostNotFound."""

    def delete_service(self, ctxt: RequestContext, service_uuid: str) -> None:
        """Delete a service. Raises HostNotFound; Conflict while servers are on its host."""
