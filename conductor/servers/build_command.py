"""The build command for an agent, from the record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from common.errors import MicronovaError
from common.messages.commands import Build, Nic, Placed, ServerVolume, StrictGroup
from common.resources.volumes import serial
from conductor.cloud import placed
from conductor.plans import CreateParams, CreatePlan, Interface
from conductor.rpc.servers.flavors import local_disks_of, root_gib
from conductor.servers import guest_data
from conductor.store.networks import networks
from conductor.store.records import Operation, Server
from conductor.store.transactions import Transaction


def interfaces(operation: Operation) -> tuple[Interface, ...]:
    """Return the requested interfaces."""
    return operation.asked(CreateParams).networks


def vlans(wanted: Iterable[tuple[str, int | None]]) -> tuple[tuple[str, int], ...]:
    """Return the (bridge, VLAN tag) pairs that have a tag."""
    return tuple((bridge, vlan) for bridge, vlan in wanted if vlan is not None)


def nic(port: networks.Port, asked: Interface) -> Nic:
    """Return an interface, fully decided."""
    return Nic(
        port_id=port.id,
        network_id=port.network_id,
        network_name=asked.name,
        bridge=asked.bridge,
        mac=port.mac,
        mtu=asked.mtu,
        vlan=asked.vlan,
        ip=port.ip,
        cidr=port.cidr,
        gateway=port.gateway,
        dns=port.dns,
        tag=port.tag,
        routes=port.routes,
        filtered=port.port_security is True,
        down=not (port.up and asked.up),
        second=port.second,
        more=port.more,
        network_owner=asked.owner,
    )


def nic_on(network: networks.Network, port: networks.Port) -> Nic:
    """Return the interface of a port on its network."""
    where = (network.id, network.name, network.bridge, network.vlan, network.mtu)
    return nic(port, Interface(*where, up=network.up, owner=network.owner))


def volume(attached: Any) -> ServerVolume:
    """Return a volume as a server's VM names it; see ``attachments.of_server``."""
    return ServerVolume(
        attached.volume_id,
        attached.volid,
        Placed(attached.host, attached.cluster, attached.node, attached.vmid),
        attached.slot,
        serial(attached.volume_id),
        readonly=attached.mode == "ro",
    )


def build(
    operation: Operation,
    server: Server,
    group: StrictGroup | None = None,
    attached: Sequence[Any] = (),
) -> Build:
    """Return the command. It may be sent again.

    ``group`` is the server's, if it is strict; ``attached``: its volumes.
    """
    plan, asked = operation.planned(CreatePlan), operation.asked(CreateParams)
    where = placed(operation)
    if where is None or operation.deadline is None:
        raise MicronovaError(f"Operation {operation.id} is spawning without a plan.")
    return Build(
        *operation.about(where, operation.deadline),
        **(of_server(server) | plan.parts()),
        config_drive=guest_data.config_drive(
            server, plan.nics, asked.admin_password, asked.files, tagged(attached)
        ),
        group=group,
        volumes=tuple(map(volume, attached)),
    )


def tagged(attached: Sequence[Any]) -> list[tuple[int, str, str]]:
    """Return slot, serial number and name of the volumes that their user has given a name."""
    return [(one.slot, serial(one.volume_id), one.tag) for one in attached if one.tag is not None]


def of_server(server: Server) -> dict[str, Any]:
    """Return the fields of a ``Build`` that are the server's record."""
    return {
        "name": server.name,
        "hostname": server.hostname,
        "project_id": server.project_id,
        "user_id": server.user_id,
        "vcpus": server.vcpus,
        "memory_mib": server.memory_mib,
        "disk_gib": root_gib(server.flavor),
        "local_disks": local_disks_of(server.flavor),
        "tags": tuple(server.tags),
        "extra_specs": server.flavor.get("extra_specs") or {},
        "image_properties": server.image_properties,
    }


def owner(connection: Transaction, server: Server) -> dict[str, Any]:
    """Return the fields of a ``Mark``: whose the VM is, and the interfaces that the record has."""
    return {
        "project_id": server.project_id,
        "user_id": server.user_id,
        "nics": nics_of(connection, server.uuid),
    }


def nics_of(connection: Transaction, server_uuid: str) -> tuple[Nic, ...]:
    """Return the interfaces of a server that has its ports."""
    return tuple(
        nic_on(net, port) for port, net in networks.interfaces_of(connection, server_uuid)
    )
