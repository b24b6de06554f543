"""The content of the guest's config drive, in OpenStack's formats. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from common.guest.hardware import root_bus
from common.messages.commands import Address, ConfigDrive, GuestFile, Nic
from conductor.rpc.servers.flavors import local_disks_of
from conductor.store.records import Server


def config_drive(
    server: Server,
    nics: Sequence[Nic],
    admin_password: str | None,
    files: tuple[GuestFile, ...] = (),
    volumes: Sequence[tuple[int, str, str]] = (),
) -> ConfigDrive:
    """Return metadata, network data, user data and files of one server.

    ``volumes``: (SCSI slot, serial number, name) of those with a user's name.
    """
    return ConfigDrive(
        meta_data=_meta_data(server, nics, admin_password, volumes),
        network_data=network_data(nics),
        vendor_data={},
        user_data=server.user_data,
        files=files,
    )


def _meta_data(
    server: Server,
    nics: Sequence[Nic],
    admin_password: str | None,
    volumes: Sequence[tuple[int, str, str]],
) -> dict[str, Any]:
    data: dict[str, Any] = {
        "uuid": server.uuid,
        "name": server.name,
        "hostname": server.hostname,
        "launch_index": server.launch_index,
        "availability_zone": server.availability_zone,
        "project_id": server.project_id,
        "meta": dict(server.meta),
        "devices": [
            *(_nic(nic) for nic in nics if nic.tag is not None),
            *([_root_disk(server.disk_tag, _bus(server))] if server.disk_tag is not None else ()),
            *(_volume(*one) for one in volumes),
            *_local_disks(server),
        ],
        # No guest is bound to processors of its own; see common.guest.limits.
        "dedicated_cpus": [],
    }
    if server.public_key:
        name = server.key_name or "key"
        data["public_keys"] = {name: server.public_key}
        data["keys"] = [{"name": name, "type": "ssh", "data": server.public_key}]
    if admin_password:
        data["admin_pass"] = admin_password
    return data


def _nic(nic: Nic) -> dict[str, Any]:
    """Return an interface that its user has given a name; the guest finds it by its MAC address.

    Where the hypervisor puts it isn't known, for which Nova has the word none.
    """
    return {"type": "nic", "bus": "none", "address": "none", "mac": nic.mac, "tags": [nic.tag]}


def _bus(server: Server) -> str:
    return root_bus({} if server.volume_backed else server.image_properties)


def _root_disk(tag: str, bus: str) -> dict[str, Any]:
    """Return the root disk with the name that its user gave it.

    It is the first disk of its controller; address: controller, channel, target, unit, as libvirt
    writes it for Nova. Of other buses Nova knows none, or an address of PCI, which isn't known
    here. Only volumes have a serial number there.
    """
    if bus not in ("scsi", "ide"):
        return {"type": "disk", "bus": "none", "address": "none", "tags": [tag]}
    return {"type": "disk", "bus": bus, "address": "0:0:0:0", "tags": [tag]}


def _volume(slot: int, serial: str, tag: str) -> dict[str, Any]:
    """Return a volume with the name that its user gave it, as ``_root_disk``.

    Each disk has a SCSI controller of its own; the guest finds it by its serial number.
    """
    address = f"{slot}:0:0:0"
    return {"type": "disk", "bus": "scsi", "address": address, "serial": serial, "tags": [tag]}


def _local_disks(server: Server) -> list[dict[str, Any]]:
    return [
        _volume(one.slot, one.serial, one.tag)
        for one in local_disks_of(server.flavor)
        if one.tag is not None
    ]


def network_data(nics: Sequence[Nic]) -> dict[str, Any]:
    """Return ``network_data.json``: one link per interface, its address, the name servers."""
    networks = [one for position, nic in enumerate(nics) for one in _networks(position, nic)]
    services = [service for one in networks for service in one.get("services", ())]
    return {
        "links": [
            {
                "id": f"interface{position}",
                "type": "phy",
                "ethernet_mac_address": nic.mac,
                "mtu": nic.mtu,
                "vif_id": nic.port_id,
            }
            for position, nic in enumerate(nics)
        ],
        "networks": [{"id": f"network{number}", **one} for number, one in enumerate(networks)],
        "services": [item for index, item in enumerate(services) if item not in services[:index]],
    }


def _networks(position: int, nic: Nic) -> list[dict[str, Any]]:
    """Return what the guest configures on an interface, one for each address."""
    there = {"link": f"interface{position}", "network_id": nic.network_id}
    if nic.ip is None or nic.cidr is None:
        return [{**there, "type": "ipv4_dhcp"}]
    first = Address(nic.ip, nic.cidr, nic.gateway, nic.dns, nic.routes)
    found = [first, *([nic.second] if nic.second is not None else ()), *nic.more]
    return [
        {**there, **_address(position, one, again=one.cidr in [of.cidr for of in found[:number]])}
        for number, one in enumerate(found)
    ]


def _address(position: int, one: Address, *, again: bool) -> dict[str, Any]:
    """Return an address; ``again``: its subnet's routes come with another one."""
    network = ipaddress.ip_network(one.cidr)
    # Only the first interface has the default route: two would race in the guest.
    default = one.gateway if position == 0 and not again else None
    return {
        "type": f"ipv{network.version}",
        "ip_address": one.ip,
        "netmask": str(network.netmask),
        "routes": [
            *([_route(_DEFAULT[network.version], default)] if default else ()),
            *(_route(destination, hop) for destination, hop in one.routes if not again),
        ],
        "services": [{"type": "dns", "address": address} for address in one.dns],
    }


_DEFAULT = {4: "0.0.0.0/0", 6: "::/0"}


def _route(destination: str, gateway: str) -> dict[str, str]:
    network = ipaddress.ip_network(destination)
    return {
        "network": str(network.network_address),
        "netmask": str(network.netmask),
        "gateway": gateway,
    }


def addresses(nics: Sequence[Nic]) -> list[Mapping[str, Any]]:
    """Return the addresses for the server's record, in the order of the interfaces."""
    return [
        {
            "network": nic.network_name,
            "network_id": nic.network_id,
            "port_id": nic.port_id,
            "ip": ip,
            "mac": nic.mac,
            "version": ipaddress.ip_address(ip).version,
        }
        for nic in nics
        for ip in nic.ips
    ]
