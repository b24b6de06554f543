"""Calls about ports that users make."""

from __future__ import annotations

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import NewPort, PortChange, TagChange
from conductor.rpc_api import PortRpc


class PortCalls(Base):
    """See ``conductor.rpc_api.PortRpc``."""

    def create_ports(self, ctxt: RequestContext, ports: list[NewPort]) -> list[str]:
        """Make all of these ports or none; return their ids.

        Raises NetworkNotFound, SubnetNotFound, NotFound (a security group), Conflict (a MAC or an
        address in use, none left; pairs without port security), Invalid (no port of the network
        can have the address; groups without port security), Forbidden (it is outside of the
        pools). ``type`` in the details is Neutron's.
        """
        return self._rpc.call(ctxt, PortRpc.create_ports, ports=ports)

    def update_port(self, ctxt: RequestContext, port_id: str, asked: PortChange) -> None:
        """Change a port. Raises as ``create_ports``, PortNotFound, Conflict (a server has it)."""
        self._rpc.call(ctxt, PortRpc.update_port, port_id=port_id, asked=asked)

    def delete_port(self, ctxt: RequestContext, port_id: str) -> None:
        """Delete a port; one that a server has is detached first, as an operation of the server.

        Raises PortNotFound, ServerLocked, ServerStateConflict, Conflict (the agent is down).
        """
        self._rpc.call(ctxt, PortRpc.delete_port, port_id=port_id)

    def change_tags(
        self, ctxt: RequestContext, kind: str, record_id: str, change: TagChange
    ) -> list[str]:
        """Change the tags of a ``network``, ``subnet``, ``port`` or ``security_group``.

        Return what it has then.

        Raises NotFound (the record, or a tag that is to be removed), Invalid over 50 tags.
        """
        return self._rpc.call(
            ctxt, PortRpc.change_tags, kind=kind, record_id=record_id, change=change
        )
