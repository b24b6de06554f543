"""Calls about server groups."""

from __future__ import annotations

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import NewServerGroup
from conductor.rpc_api import ServerGroupRpc


class ServerGroupCalls(Base):
    """See ``conductor.rpc_api.ServerGroupRpc``."""

    def create_server_group(self, ctxt: RequestContext, group: NewServerGroup) -> str:
        """Return the UUID of a new group. Raises QuotaExceeded over ``server_groups``."""
        return self._rpc.call(ctxt, ServerGroupRpc.create_server_group, group=group)

    def delete_server_group(self, ctxt: RequestContext, group_uuid: str) -> None:
        """Delete a group; its servers stay. Raises NotFound, also for another project's."""
        self._rpc.call(ctxt, ServerGroupRpc.delete_server_group, group_uuid=group_uuid)
