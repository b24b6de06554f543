"""Ports of adopted VMs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from common import clock, ids
from common.errors import Conflict, Invalid
from common.messages.commands import Address, Nic
from common.messages.facts import NicFacts
from conductor.store.networks import addresses, networks
from conductor.store.networks.networks import Network, address_columns
from conductor.store.networks.pools import Pools
from db.schema import ports


def port(
    connection: sa.Connection,
    server_uuid: str,
    project_id: str,
    position: int,
    nic: NicFacts,
    network: Network,
) -> Nic:
    """Record an existing interface, with its address if that is known and free.

    The port gets the ID that its mark names. Raises Conflict when another server has its MAC.
    """
    taken = connection.execute(sa.select(ports.c.server_uuid).where(ports.c.mac == nic.mac))
    if (other := taken.scalar()) is not None:
        raise Conflict(f"MAC address {nic.mac} is that of a port of server {other}.")
    given = _addresses(connection, nic.ips, network.id)
    port_id = _port_id(connection, nic)
    connection.execute(
        ports.insert().values(
            id=port_id,
            network_id=network.id,
            **address_columns([(subnet.id, ip) for subnet, ip in given]),
            server_uuid=server_uuid,
            project_id=project_id,
            position=position,
            mac=nic.mac,
            created_at=clock.utcnow(),
        )
    )
    first, second = [*(ip for _, ip in given), None, None][:2]
    return Nic(
        port_id,
        network.id,
        network.name,
        network.bridge,
        nic.mac,
        ip=first,
        second=Address(second, given[1][0].cidr) if second else None,
    )


def _port_id(connection: sa.Connection, nic: NicFacts) -> str:
    """Return the ID that the port had by its mark, unless another port has that ID."""
    if nic.port is None or not ids.is_uuid(nic.port.id):
        return ids.new_uuid()
    there = connection.scalar(sa.select(ports.c.id).where(ports.c.id == nic.port.id))
    return nic.port.id if there is None else ids.new_uuid()


def lacking(connection: sa.Connection, project_id: str, nics: Sequence[NicFacts]) -> list[str]:
    """Return which interfaces and addresses would be on no network of a project's, in words."""
    wires = {(one.bridge, one.vlan): one for one in networks.usable(connection, project_id)}
    pools = Pools(connection, sorted({one.id for one in wires.values()}))
    found = []
    for nic in nics:
        network = wires.get((nic.bridge, nic.vlan))
        tag = f" with VLAN tag {nic.vlan}" if nic.vlan else ""
        if network is None:
            found.append(f"interface {nic.mac} on {nic.bridge}{tag}")
            continue
        for ip in nic.ips:
            try:
                addresses.chosen(pools.subnets(network.id), ip, anywhere=True)
            except Invalid:
                found.append(f"address {ip} on {nic.bridge}{tag}")
    return found


def _addresses(
    connection: sa.Connection, ips: Sequence[str], network_id: str
) -> list[tuple[Any, str]]:
    """Return (subnet, address): one of each family, IPv4 first, of those known and free."""
    pools = Pools(connection, [network_id] * len(ips))
    found: dict[bool, tuple[Any, str]] = {}
    for asked in ips:
        with contextlib.suppress(Invalid):
            subnet, address = addresses.chosen(pools.subnets(network_id), asked, anywhere=True)
            if pools.is_free(subnet, address):
                found.setdefault(":" in address, (subnet, address))
    return [one for _, one in sorted(found.items(), key=lambda item: item[0])]
