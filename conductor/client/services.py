"""Calls about services."""

from __future__ import annotations

from common.context import RequestContext
from conductor.client.base import Base
from conductor.rpc_api import ServiceRpc


class ServiceCalls(Base):
    """See ``conductor.rpc_api.ServiceRpc``."""

    def ping(self, ctxt: RequestContext) -> str:
        """Return the name of the conductor that answers. Raises Unavailable when none does."""
        return self._rpc.call(ctxt, ServiceRpc.ping)

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
        self._rpc.call(
            ctxt,
            ServiceRpc.update_service,
            service_uuid=service_uuid,
            disabled=disabled,
            reason=reason,
            forced_down=forced_down,
        )

    def delete_service(self, ctxt: RequestContext, service_uuid: str) -> None:
        """Delete a service. Raises HostNotFound; Conflict while servers are on its host."""
        self._rpc.call(ctxt, ServiceRpc.delete_service, service_uuid=service_uuid)
