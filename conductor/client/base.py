"""What the calls of every noun share: the typed RPC client."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Self

from common import rpc
from common.messages.topics import CONDUCTOR_TOPIC
from common.typed_rpc import TypedClient
from conductor.rpc_api import ConductorRpc

if TYPE_CHECKING:
    # Only for its types: common.rpc must be the first to import it.
    import oslo_messaging


class Base:
    """Sends to any conductor."""

    def __init__(self, transport: oslo_messaging.Transport) -> None:
        self._rpc: TypedClient[ConductorRpc] = TypedClient(rpc.Client(transport, CONDUCTOR_TOPIC))

    def within(self, timeout_seconds: float) -> Self:
        """Return a client that waits that long for answers."""
        other = copy.copy(self)
        other._rpc = self._rpc.within(timeout_seconds)
        return other
