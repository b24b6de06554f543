"""The RPC endpoint of what runs in servers."""

from __future__ import annotations

from common.context import RequestContext
from common.messages.guests import Diagnostics
from common.messages.measurements import Measured, Period
from common.resources.states import ResourceType
from conductor.cloud import Cloud
from conductor.engine import guests, measurements
from conductor.servers.accept import Accept
from conductor.servers.guest import change_password


class GuestEndpoint:
    """See ``conductor.rpc.GuestRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._accept = Accept(cloud)

    def diagnose_server(self, ctxt: RequestContext, server_uuid: str) -> Diagnostics:
        ctxt.about(ResourceType.SERVER, server_uuid)
        return guests.diagnose(self._cloud, ctxt, server_uuid)

    def change_password(self, ctxt: RequestContext, server_uuid: str, password: str) -> None:
        ctxt.about(ResourceType.SERVER, server_uuid)
        change_password.change_password(self._cloud, self._accept, ctxt, server_uuid, password)

    def measure_server(self, ctxt: RequestContext, server_uuid: str, period: Period) -> Measured:
        ctxt.about(ResourceType.SERVER, server_uuid)
        return measurements.of_server(self._cloud, ctxt, server_uuid, period)

    def server_console_log(self, ctxt: RequestContext, server_uuid: str) -> str:
        ctxt.about(ResourceType.SERVER, server_uuid)
        return guests.console_log(self._cloud, ctxt, server_uuid)
