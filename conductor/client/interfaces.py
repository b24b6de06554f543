"""Calls about servers' interfaces."""

from __future__ import annotations

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import Attachment
from conductor.rpc_api import InterfaceRpc


class InterfaceCalls(Base):
    """See ``conductor.rpc_api.InterfaceRpc``."""

    def attach_interface(
        self, ctxt: RequestContext, server_uuid: str, asked: Attachment, *, wait: bool
    ) -> str:
        """Attach an interface; return its port's id, with ``wait`` once the VM has it.

        Raises ServerNotFound, ServerLocked, ServerStateConflict, Conflict (the address or the
        port is in use, the host's agent is down), NotFound (network or port), Invalid (no network
        or several to choose from, no such address, none left, the VM doesn't take it), Forbidden
        (the address is outside of the pool), Unavailable (the host fails, or takes long).
        """
        return self._rpc.call(
            ctxt,
            InterfaceRpc.attach_interface,
            server_uuid=server_uuid,
            asked=asked,
            wait=wait,
        )

    def detach_interface(self, ctxt: RequestContext, server_uuid: str, port_id: str) -> None:
        """Begin to detach an interface; where the guest keeps it, it stays.

        Raises ServerNotFound, ServerLocked, ServerStateConflict, NotFound (no such port of the
        server), Conflict (the host's agent is down).
        """
        self._rpc.call(
            ctxt, InterfaceRpc.detach_interface, server_uuid=server_uuid, port_id=port_id
        )

    def detach_address(self, ctxt: RequestContext, server_uuid: str, address: str) -> None:
        """Begin to detach the interface with this address.

        Raises what ``detach_interface`` does, and Invalid where no interface has it.
        """
        self._rpc.call(ctxt, InterfaceRpc.detach_address, server_uuid=server_uuid, address=address)
