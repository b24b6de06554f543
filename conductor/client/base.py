"""What the calls of every noun share: the typed RPC client."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
