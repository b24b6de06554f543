"""Ports of adopted VMs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from common import clock, ids
from common.errors import Conflict, Invalid
from common.messages.commands import Address, Nic
from common.messages.facts import NicFacts
from conductor.store.networks import addresses, more_addresses, networks, revisions
from conductor.store.networks.networks import Network, address_columns
from conductor.store.networks.pools import Pools, port_with
from db.schema import ports

#: (subnet's row, address)
Given = tuple[Any, str]


def port(
    connection: sa.Connection,
    server_uuid: str,
    project_id: str,
    position: int,
    nic: NicFacts,
    network: Network,
) -> Nic:
    """Record an existing interface.

    If its mark names a port, it becomes that port, with all addresses of the mark; a port of the
    record that is no server's is used. Else it is a new port, with its address if that is known
    and free. Raises Conflict when another port has its MAC, or an address of its mark.
    """
    there = connection.execute(_OF_MAC, {"mac": nic.mac}).first()
    if there is not None and not _is_its_own(there, nic, network, project_id):
        whose = f"server {there.server_uuid}" if there.server_uuid else f"no server, {there.id}"
        raise Conflict(f"MAC address {nic.mac} is that of a port of {whose}.")
    given = _given(connection, nic, network.id)
    values = {"server_uuid": server_uuid, "position": position}
    if there is None:
        values |= {"network_id": network.id, "project_id": project_id, "mac": nic.mac}
        values |= {"id": _port_id(connection, nic), "created_at": clock.utcnow()}
    else:
        values |= {"id": there.id, **revisions.changed(ports)}
    _write(connection, values, given, new=there is None)
    shown: list[Given | None] = [*given, None, None]
    first, second, *more = shown
    return Nic(
        str(values["id"]),
        network.id,
        network.name,
        network.bridge,
        nic.mac,
        ip=first[1] if first else None,
        second=_address(second) if second else None,
        more=tuple(_address(one) for one in more if one),
    )


#: locked, as its user may give it to another server now
_OF_MAC = sa.select(ports).where(ports.c.mac == sa.bindparam("mac")).with_for_update()


def _address(one: Given) -> Address:
    return Address(one[1], one[0].cidr)


def _is_its_own(row: Any, nic: NicFacts, network: Network, project_id: str) -> bool:
    """Return whether it is the port that an interface's mark names, and no server's."""
    named = nic.port is not None and nic.port.id == row.id
    same = (row.network_id, row.project_id) == (network.id, project_id)
    return named and same and not row.server_uuid


def _write(
    connection: sa.Connection, values: dict[str, Any], given: Sequence[Given], *, new: bool
) -> None:
    """Write a port; one of the record remains with its addresses if the VM shows none."""
    inline, more = more_addresses.split([(subnet.id, ip) for subnet, ip in given])
    if new or given:
        values |= {**address_columns(inline), "more_addresses": more_addresses.column(more)}
    if new:
        connection.execute(ports.insert().values(values))
    else:
        connection.execute(ports.update().where(ports.c.id == values["id"]).values(values))
    if given:
        more_addresses.write(connection, values["id"], more)


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


def taken(connection: sa.Connection, project_id: str, nics: Sequence[NicFacts]) -> list[str]:
    """Return which addresses of marked interfaces are those of other ports, in sentences."""
    wires = {(one.bridge, one.vlan): one for one in networks.usable(connection, project_id)}
    return [
        text
        for nic in nics
        if (network := wires.get((nic.bridge, nic.vlan))) is not None
        for text in _taken(connection, nic, _marked(connection, nic, network.id))
    ]


def _taken(connection: sa.Connection, nic: NicFacts, given: Sequence[Given]) -> Iterator[str]:
    for subnet, ip in given:
        other = port_with(connection, subnet.id, ip)
        if other is not None and other.mac != nic.mac:
            whose = (
                f"server {other.server_uuid}" if other.server_uuid else f"no server, {other.id}"
            )
            yield f"Its address {ip} is that of a port of {whose}."


def _given(connection: sa.Connection, nic: NicFacts, network_id: str) -> list[Given]:
    """Return the addresses of an interface's port, IPv4 first. Raises Conflict."""
    given = _marked(connection, nic, network_id)
    for text in _taken(connection, nic, given):
        raise Conflict(text)
    return sorted(given or _free(connection, nic.ips, network_id), key=lambda one: ":" in one[1])


def _marked(connection: sa.Connection, nic: NicFacts, network_id: str) -> list[Given]:
    """Return the addresses that a mark names: all that its subnets may have.

    They are its own whatever other VM is seen with them: this cloud has given them to it.
    """
    if nic.port is None:
        return []
    pools = Pools(connection, [network_id] * len(nic.port.addresses))
    found = []
    for one in nic.port.addresses:
        with contextlib.suppress(Invalid):
            found.append(addresses.chosen(pools.subnets(network_id), one.ip, anywhere=True))
    return found


def _free(connection: sa.Connection, ips: Sequence[str], network_id: str) -> list[Given]:
    """Return (subnet, address): one of each family, of those known and free."""
    pools = Pools(connection, [network_id] * len(ips))
    found: dict[bool, Given] = {}
    for asked in ips:
        with contextlib.suppress(Invalid):
            subnet, address = addresses.chosen(pools.subnets(network_id), asked, anywhere=True)
            if pools.is_free(subnet, address):
                found.setdefault(":" in address, (subnet, address))
    return list(found.values())
