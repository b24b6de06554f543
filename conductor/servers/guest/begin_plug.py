"""Accepts interfaces that are attached to a server, or detached: one transaction each.

The transaction that accepts an attachment makes a port, with MAC and address, or binds a port of
the user's to the server; undoing it deletes or unbinds the port. The operation doesn't take the
server: other actions may begin at the same time, as in Nova, and the agent carries out the
commands about one VM in order.
"""

from __future__ import annotations

from common.context import RequestContext
from common.errors import Conflict, Invalid, NetworkNotFound, NotFound
from common.messages.commands import Nic, Plug
from common.resources import networks as choice
from conductor.cloud import Cloud
from conductor.engine import access
from conductor.engine.access import scope
from conductor.engine.settling import Settling
from conductor.plans import CommandPlan
from conductor.rpc.servers.interfaces import Attachment
from conductor.servers import build_command
from conductor.servers.guest import plugging
from conductor.store import call_answers
from conductor.store.ledger import operations as ledger
from conductor.store.networks import networks, user_ports
from conductor.store.networks.networks import Network, Port, RequestedPort, ServerPorts
from conductor.store.networks.pools import Within
from conductor.store.records import Operation, Server
from conductor.store.transactions import Transaction

ATTACH, DETACH = "attach_interface", "detach_interface"
#: the stages of their flows
PLUG, UNPLUG = "plug", "unplug"


class PlugAcceptance:
    """Begins attachments and detachments."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud, self._settling = cloud, Settling(cloud)

    def attach(
        self, ctxt: RequestContext, server_uuid: str, asked: Attachment
    ) -> tuple[Operation, str]:
        """Return the operation and the id of its port. See ``ConductorRpc``."""
        return self._settling.run(lambda c, w: self._attach(c, ctxt, server_uuid, asked, w))

    def detach(self, ctxt: RequestContext, server_uuid: str, port_id: str) -> Operation | None:
        """Return the operation; None if one is at it. See ``ConductorRpc.detach_interface``."""
        return self._cloud.store.run(lambda c: self._detach(c, ctxt, server_uuid, port_id, None))

    def detaching(
        self, connection: Transaction, ctxt: RequestContext, server_uuid: str, port_id: str
    ) -> Operation | None:
        """As ``detach``, in this transaction."""
        return self._detach(connection, ctxt, server_uuid, port_id, None)

    def detach_address(
        self, ctxt: RequestContext, server_uuid: str, address: str
    ) -> Operation | None:
        """As ``detach``, the interface with this address. Raises Invalid if there is none."""
        return self._cloud.store.run(lambda c: self._detach(c, ctxt, server_uuid, None, address))

    def _attach(
        self,
        connection: Transaction,
        ctxt: RequestContext,
        uuid: str,
        asked: Attachment,
        within: Within,
    ) -> tuple[Operation, str]:
        server = access.free(connection, ctxt, uuid, ATTACH)
        slot = _slot(networks.ports_of(connection, uuid))
        if asked.port_id is not None:
            found = user_ports.find(
                connection, asked.port_id, scope(ctxt), server.project_id, server.uuid
            )
            network = networks.named(connection, [found.network_id])[found.network_id]
            network.require_addresses(found.id, found.ip)
            user_ports.give(connection, found.id, uuid, slot, asked.tag)
            ports = networks.ports_of(connection, uuid)
            port = next(one for one in ports if one.id == found.id)
        else:
            network = self._network(connection, ctxt, server, asked.network_id)
            network.require_addresses()
            there = within.only(server.cluster)
            port = self._port(connection, server, network, asked, slot, there)
        nic = build_command.nic_on(network, port)
        plan = CommandPlan(plugging.place(server), Plug(nic=nic, slot=slot))
        begun = plugging.begin(connection, self._cloud, ctxt, server, ATTACH, PLUG, plan)
        call_answers.note(connection, port.id)
        return begun, port.id

    def _network(
        self,
        connection: Transaction,
        ctxt: RequestContext,
        server: Server,
        network_id: str | None,
    ) -> Network:
        if network_id is not None:
            named = networks.named(connection, [network_id], scope(ctxt)).get(network_id)
            if named is None:
                raise NetworkNotFound(f"Network {network_id} could not be found.")
            return named
        known = networks.unnamed(connection, server.project_id)
        try:
            found = choice.chosen(known, self._cloud.conf.networks.auto)
        except Conflict as error:
            raise Invalid(
                "More than one possible network found. Specify network ID(s) to select which "
                "one(s) to connect to."
            ) from error
        if found is None:
            raise Invalid(
                "No specific network was requested and none are available for project "
                f"'{server.project_id}'."
            )
        return found

    def _port(
        self,
        connection: Transaction,
        server: Server,
        network: Network,
        asked: Attachment,
        position: int,
        within: Within,
    ) -> Port:
        """Make the port. Raises Invalid, Forbidden, or Conflict for an address in use."""
        fixed_ip = asked.fixed_ip
        if fixed_ip is not None:
            if networks.address_in_use(connection, network.id, fixed_ip):
                raise Conflict(
                    f"Fixed IP address {fixed_ip} is already in use on instance {server.uuid}."
                )
            fixed_ip = networks.check_address(
                connection, network.id, fixed_ip, anywhere=asked.any_address
            )
        prefix = self._cloud.conf.networks.mac_prefix
        requested = RequestedPort(network.id, fixed_ip, asked.tag, network.port_security)
        try:
            [[made]] = networks.create_ports(
                connection,
                [ServerPorts(server.uuid, server.project_id, [requested], first=position)],
                prefix,
                filtered=self._cloud.filtering.on(connection),
                within=within,
            )
        except Conflict as error:
            # No address is left, which Nova answers with 400.
            raise Invalid(error.message) from error
        return made

    def _detach(
        self,
        connection: Transaction,
        ctxt: RequestContext,
        uuid: str,
        port_id: str | None,
        address: str | None,
    ) -> Operation | None:
        server = access.free(connection, ctxt, uuid, DETACH)
        ports = networks.ports_of(connection, uuid)
        wanted = (
            one for one in ports if port_id in (None, one.id) and address in (None, *one.ips)
        )
        port = next(wanted, None)
        if port is None and port_id is not None:
            raise NotFound(f"Port id {port_id} could not be found.")
        if port is None:
            raise Invalid(f"Instance {uuid} does not have fixed IP '{address}'.")
        if port.id in _leaving(connection, uuid):
            return None
        nic = Nic(
            port.id,
            port.network_id,
            "",
            "",
            port.mac,
            ip=port.ip,
            tag=port.tag,
            second=port.second,
            more=port.more,
        )
        plan = CommandPlan(plugging.place(server), Plug(nic=nic, slot=port.position))
        return plugging.begin(connection, self._cloud, ctxt, server, DETACH, UNPLUG, plan)


def _leaving(connection: Transaction, server_uuid: str) -> set[str]:
    """Return the ports of a server that are being detached."""
    found = ledger.open_with(connection, server_uuid, DETACH)
    return {operation.ordered(Plug).nic.port_id for operation in found}


def _slot(ports: list[Port]) -> int:
    """Return the lowest position that no port of the server has. Raises Invalid."""
    used = {port.position for port in ports}
    free = next((number for number in range(choice.MOST_INTERFACES) if number not in used), None)
    if free is None:
        raise choice.too_many_interfaces()
    return free
