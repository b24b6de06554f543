"""The RPC endpoint of consoles."""

from __future__ import annotations

from common.context import RequestContext
from common.messages.consoles import ConsoleTarget
from common.resources.states import ResourceType
from conductor.cloud import Cloud
from conductor.servers.guest import consoles


class ConsoleEndpoint:
    """See ``conductor.rpc.ConsoleRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def authorize_console(
        self,
        ctxt: RequestContext,
        server_uuid: str,
        protocol: str,
        console_type: str,
        token_hash: str,
    ) -> None:
        ctxt.about(ResourceType.SERVER, server_uuid)
        consoles.authorize(self._cloud, ctxt, server_uuid, protocol, console_type, token_hash)

    def use_console_token(self, ctxt: RequestContext, token_hash: str) -> ConsoleTarget:
        return consoles.use_token(self._cloud, token_hash)
