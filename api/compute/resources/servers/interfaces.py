"""Interfaces of a server: `os-interface`, and the actions on fixed addresses before it."""

from __future__ import annotations

from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server
from api.compute.schemas import interfaces as schemas
from common.errors import Invalid, NotFound
from conductor.rpc.servers.interfaces import Attachment
from db.reads.networks import networks
from db.reads.networks.networks import Port

_FIXED_IPS_UNTIL = "2.43"


class ServerInterfaces:
    """The interfaces of one server, each a port of a network."""

    @operation("os-attach-interfaces:list", query=schemas.LOOK, on=the_server)
    def index(self, call: Call) -> Any:
        """List a server's interfaces."""
        ports = call.read(networks.ports_of, call.server.uuid)
        return {"interfaceAttachments": [_view(call, port) for port in ports]}

    @operation("os-attach-interfaces:show", query=schemas.LOOK, on=the_server)
    def show(self, call: Call, port_id: str) -> Any:
        """Show one of a server's interfaces."""
        return _shown(call, port_id)

    @operation("os-attach-interfaces:create", body=schemas.CREATE, on=the_server)
    def create(self, call: Call) -> Any:
        """Attach an interface, also to a running server; answer once it is attached."""
        asked = (call.body or {}).get("interfaceAttachment", {})
        network_id, port_id = asked.get("net_id"), asked.get("port_id")
        fixed_ip = next((one["ip_address"] for one in asked.get("fixed_ips", ())), None)
        if network_id and port_id:
            raise Invalid("Must not input both network_id and port_id")
        if fixed_ip and not network_id:
            raise Invalid("Must input network_id when request IP address")
        attachment = Attachment(
            network_id, port_id, fixed_ip, asked.get("tag"), call.allows(policies.ANY_ADDRESS)
        )
        made = call.conductor.attach_interface(call.ctxt, call.server.uuid, attachment, wait=True)
        return _shown(call, made)

    @operation("os-attach-interfaces:delete", status=202, on=the_server)
    def delete(self, call: Call, port_id: str) -> None:
        """Detach an interface; if the guest does not release it, it remains attached."""
        call.conductor.detach_interface(call.ctxt, call.server.uuid, port_id)


class FixedIpActions:
    """The actions on addresses up to 2.43. An interface has one address here."""

    @operation(
        "os-multinic:add",
        until=_FIXED_IPS_UNTIL,
        body=schemas.ADD_FIXED_IP,
        status=202,
        on=the_server,
    )
    def add_fixed_ip(self, call: Call) -> None:
        """Give a server one more address of a network: with an interface of its own."""
        network_id = str(call.body["addFixedIp"]["networkId"])
        call.conductor.attach_interface(
            call.ctxt, call.server.uuid, Attachment(network_id), wait=False
        )

    @operation(
        "os-multinic:remove",
        until=_FIXED_IPS_UNTIL,
        body=schemas.REMOVE_FIXED_IP,
        status=202,
        on=the_server,
    )
    def remove_fixed_ip(self, call: Call) -> None:
        """Remove an address from a server, with its interface."""
        address = call.body["removeFixedIp"]["address"]
        call.conductor.detach_address(call.ctxt, call.server.uuid, address)


def _shown(call: Call, port_id: str) -> dict[str, Any]:
    """Return one of the server's interfaces. Raises NotFound."""
    uuid = call.server.uuid
    ports = call.read(networks.ports_of, uuid)
    port = next((one for one in ports if one.id == port_id), None)
    if port is None:
        raise NotFound(f"Instance {uuid} does not have a port with id {port_id}")
    return {"interfaceAttachment": _view(call, port)}


def _view(call: Call, port: Port) -> dict[str, Any]:
    view = {
        "net_id": port.network_id,
        "port_id": port.id,
        "mac_addr": port.mac,
        "port_state": port.status,
        "fixed_ips": port.fixed_ips,
    }
    return view | ({"tag": port.tag} if call.version >= 70 else {})
