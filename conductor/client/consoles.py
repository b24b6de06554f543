"""Calls about consoles."""

from __future__ import annotations

from common.context import RequestContext
from common.messages.consoles import ConsoleTarget
from conductor.client.base import Base
from conductor.rpc_api import ConsoleRpc


class ConsoleCalls(Base):
    """See ``conductor.rpc_api.ConsoleRpc``."""

    def authorize_console(
        self,
        ctxt: RequestContext,
        server_uuid: str,
        protocol: str,
        console_type: str,
        token_hash: str,
    ) -> None:
        """Let the token with this hash open a console of a server, once and for some time.

        Raises ServerNotFound, Conflict (no host yet, or it is being deleted), NotSupported (no
        such console), Invalid (a type that the protocol hasn't), Unavailable (no agent answers).
        """
        self._rpc.call(
            ctxt,
            ConsoleRpc.authorize_console,
            server_uuid=server_uuid,
            protocol=protocol,
            console_type=console_type,
            token_hash=token_hash,
        )

    def use_console_token(self, ctxt: RequestContext, token_hash: str) -> ConsoleTarget:
        """Use a token up and return what it opens; for console proxies.

        Raises NotFound for a token that is unknown, used or too old, and for a server that is
        gone; Conflict while the server is being deleted.
        """
        return self._rpc.call(ctxt, ConsoleRpc.use_console_token, token_hash=token_hash)
