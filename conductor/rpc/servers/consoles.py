"""Calls about consoles of servers, and the proxies that open them."""

from __future__ import annotations

from typing import Protocol

from common.context import RequestContext
from common.messages.consoles import ConsoleTarget


class ConsoleRpc(Protocol):
    """Consoles of servers, and the proxies that open them."""

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

    def use_console_token(self, ctxt: RequestContext, token_hash: str) -> ConsoleTarget:
        """Use a token up and return what it opens; for console proxies.

        Raises NotFound for a token that is unknown, used or too old, and for a server that is
        gone; Conflict while the server is being deleted.
        """
