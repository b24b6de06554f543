"""The RPC endpoint of what runs in servers."""

from __future__ import annotations

from common.context import RequestContext
from common.messages.guests import Diagnostics
from conductor.cloud import Cloud
from conductor.flows.accept import Accept
from conductor.flows.guest import change_password, guests


class GuestEndpoint:
    """See ``conductor.rpc_api.GuestRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._accept = Accept(cloud)

    def diagnose_server(self, ctxt: RequestContext, server_uuid: str) -> Diagnostics:
        """See ``ConductorClient.diagnose_server``."""
        ctxt.server_uuid = server_uuid
        return guests.diagnose(self._cloud, ctxt, server_uuid)

    def change_password(self, ctxt: RequestContext, server_uuid: str, password: str) -> None:
        """See ``ConductorClient.change_password``."""
        ctxt.server_uuid = server_uuid
        change_password.change_password(self._cloud, self._accept, ctxt, server_uuid, password)

    def server_console_log(self, ctxt: RequestContext, server_uuid: str) -> str:
        """See ``ConductorClient.server_console_log``."""
        ctxt.server_uuid = server_uuid
        return guests.console_log(self._cloud, ctxt, server_uuid)
