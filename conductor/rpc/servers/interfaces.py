"""Calls about interfaces of servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from common.context import RequestContext


@dataclass(frozen=True)
class Attachment:
    """An interface that is asked for; a network that isn't named is the only one there is."""

    network_id: str | None = None
    port_id: str | None = None
    fixed_ip: str | None = None
    tag: str | None = None
    any_address: bool = False
    """Whether the address may be outside of the pool."""


class InterfaceRpc(Protocol):
    """Interfaces of servers."""

    def attach_interface(
        self, ctxt: RequestContext, server_uuid: str, asked: Attachment, *, wait: bool
    ) -> str:
        """Attach an interface; return its port's id, with ``wait`` once it is in the VM.

        Raises ServerNotFound, ServerLocked, ServerStateConflict, Conflict (the address or the
        port is in use, the host's agent is down), NotFound (network or port), Invalid (no network
        or several to choose from, no such address, none left, the VM doesn't take it), Forbidden
        (the address is outside of the pool), Unavailable (the host fails, or takes long).
        """

    def detach_interface(self, ctxt: RequestContext, server_uuid: str, port_id: str) -> None:
        """Begin to detach an interface; it remains attached if the guest doesn't release it.

        Raises ServerNotFound, ServerLocked, ServerStateConflict, NotFound (no such port of the
        server), Conflict (the host's agent is down).
        """

    def detach_address(self, ctxt: RequestContext, server_uuid: str, address: str) -> None:
        """Begin to detach the interface with this address.

        Raises what ``detach_interface`` does, and Invalid if no interface has the address.
        """
