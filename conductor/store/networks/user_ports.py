"""Ports that users make: a server gets them by their IDs, and they outlive it.

Refusals are Neutron's: its words, and the ``type`` of its answers in the details.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NetworkNotFound,
    PortNotFound,
    SubnetNotFound,
)
from common.rpc import deadlines
from conductor.rpc.networks.ports import FixedIp, NewPort, PortChange
from conductor.store.networks import (
    addresses,
    more_addresses,
    network_tags,
    networks,
    revisions,
    unknown_vms,
)
from conductor.store.networks.filtering import port_security, security_groups
from conductor.store.networks.pools import ANYWHERE, Macs, Pools, Within
from conductor.store.outbox import filter_outbox
from db import schema

#: Neutron's max_fixed_ips_per_port
MOST_ADDRESSES = 5
_C = schema.ports.c

# Built once: every creation and every deletion executes them.
_WANTED: sa.BindParameter[Sequence[str]] = sa.bindparam("macs", expanding=True)
_MACS = sa.union_all(sa.select(_C.mac).where(_C.mac.in_(_WANTED)), unknown_vms.macs(_WANTED))
_INSERT = schema.ports.insert()
_LOCK = sa.select(schema.ports).where(_C.id == sa.bindparam("port")).with_for_update()
_DELETE = schema.ports.delete().where(_C.id == sa.bindparam("port"), _C.server_uuid == "")


def create(
    connection: sa.Connection,
    wanted: Sequence[NewPort],
    mac_prefix: str,
    viewer: str | None,
    unfiltered: str = "",
    within: Within = ANYWHERE,
) -> list[str]:
    """Write ports; return their ids. The number of statements doesn't grow with them.

    ``viewer`` is the project that asks, and whose security groups may be named; None: an
    administrator. ``unfiltered``: why ports can't be filtered; empty: ports are filtered unless
    the request says otherwise.

    Raises Unsettled (see ``Pools``), NetworkNotFound, SubnetNotFound, Conflict for a MAC or an
    address in use, or none left, Invalid for an address that no port of the network can have,
    Forbidden for one outside of the pools.
    """
    wanted_networks = [new.network_id for new in wanted]
    macs = Macs(mac_prefix, sum(not new.mac for new in wanted))
    pools = Pools(connection, wanted_networks, macs, within)
    known = _require_networks(connection, wanted_networks, viewer)
    wanted = [_with_security_of_network(new, known[new.network_id]) for new in wanted]
    for new in wanted:
        port_security.require_filtering(new.port_security, unfiltered)
        network_tags.require_few("port", sorted(set(new.tags)))
    _require_free_macs(connection, [(new.network_id, new.mac) for new in wanted if new.mac])
    now = clock.utcnow()
    allowed = {"filtered": not unfiltered, "any_mac": viewer is None}
    rows = [
        _row(connection, pools, new, new.mac or macs.take(), **allowed) | {"created_at": now}
        for new in wanted
    ]
    pools.close()
    connection.execute(_INSERT, rows)
    for row in rows:
        if row["more_addresses"]:
            more_addresses.write(connection, row["id"], row["more_addresses"])
    port_security.bind_new(connection, wanted, [row["id"] for row in rows], viewer)
    return [row["id"] for row in rows]


def _with_security_of_network(new: NewPort, network: networks.Network) -> NewPort:
    """Return a port with its network's port security, unless the request sets the port's own."""
    if network.port_security or new.port_security is not None:
        return new
    return dataclasses.replace(new, port_security=False)


def _row(
    connection: sa.Connection,
    pools: Pools,
    new: NewPort,
    mac: str,
    *,
    filtered: bool,
    any_mac: bool,
) -> dict[str, Any]:
    given = _addresses(connection, pools, new.network_id, new.fixed_ips, new.any_address)
    return {
        "id": deadlines.new_uuid(),
        "network_id": new.network_id,
        **_columns(given),
        "server_uuid": "",
        "project_id": new.project_id,
        "position": 0,
        "mac": mac,
        "name": new.name,
        "description": new.description,
        "kept": True,
        "tags": sorted(set(new.tags)) or None,
        "port_security": True if filtered and new.port_security is None else new.port_security,
        "address_pairs": port_security.pairs(new.address_pairs, mac, any_mac=any_mac),
        "admin_state_up": None if new.admin_state_up else False,
        "binding_host": new.binding_host or None,
    }


def change(
    connection: sa.Connection,
    port_id: str,
    asked: PortChange,
    project_id: str | None = None,
    unfiltered: str = "",
    within: Within = ANYWHERE,
) -> None:
    """Change a port. ``project_id``: whose security groups may be named; None: any.
    ``unfiltered``: why ports can't be filtered; empty: they can.

    Raises what ``create`` does, PortNotFound, and Conflict for other addresses of a server's port:
    its guest would not learn them.
    """
    row = locked(connection, port_id)
    values: dict[str, Any] = revisions.changed(schema.ports)
    if asked.name is not None:
        values["name"] = asked.name
    if asked.description is not None:
        values["description"] = asked.description
    if asked.admin_state_up is not None:
        values["admin_state_up"] = asked.admin_state_up
        filter_outbox.add(connection, [row.server_uuid])
    if asked.binding_host is not None:
        _require_no_server(row, "host")
        values["binding_host"] = asked.binding_host or None
    if asked.mac is not None and asked.mac != row.mac:
        _require_no_server(row, "MAC address")
        within.require(connection)
        _require_free_macs(connection, [(row.network_id, asked.mac)])
        values["mac"] = asked.mac
    values |= port_security.change(connection, row, asked, project_id, unfiltered)
    if asked.fixed_ips is not None and not _has(row, asked.fixed_ips):
        _require_no_server(row, "addresses")
        values |= _columns(())
        connection.execute(schema.ports.update().where(_C.id == port_id).values(**values))
        more_addresses.write(connection, port_id, ())
        pools = Pools(connection, [row.network_id], within=within)
        given = _addresses(connection, pools, row.network_id, asked.fixed_ips, asked.any_address)
        values |= _columns(given)
        more_addresses.write(connection, port_id, values["more_addresses"] or ())
        pools.close()
        groups = security_groups.of_port(connection, port_id)
        filter_outbox.members_changed(connection, groups)
    connection.execute(schema.ports.update().where(_C.id == port_id).values(**values))


def locked(connection: sa.Connection, port_id: str) -> Any:
    """Return a port's row, locked. Raises PortNotFound."""
    row = connection.execute(_LOCK, {"port": port_id}).first()
    if row is None:
        raise PortNotFound(f"Port {port_id} could not be found.")
    return row


def locked_of(
    connection: sa.Connection, port_ids: Sequence[str], project_id: str
) -> Sequence[Any]:
    """Return those of these ports that are the project's, locked in one order; but none that is
    being deleted with its server."""
    if not port_ids:
        return ()
    mine = (_C.id.in_(port_ids), _C.project_id == project_id, _C.kept)
    query = sa.select(schema.ports).where(*mine).order_by(_C.id).with_for_update()
    return connection.execute(query).all()


def is_on_network_of(connection: sa.Connection, network_id: str, project_id: str | None) -> bool:
    """Return whether a network is the project's."""
    mine = sa.select(schema.networks.c.project_id).where(schema.networks.c.id == network_id)
    return bool(project_id) and connection.execute(mine).scalar() == project_id


def delete(connection: sa.Connection, port_id: str) -> None:
    """Delete a port that no server has."""
    if connection.execute(_DELETE, {"port": port_id}).rowcount:
        security_groups.unbind(connection, port_id)


def delete_with_server(connection: sa.Connection, port_id: str) -> None:
    """Mark a port to be deleted with its server, or when it is detached."""
    connection.execute(schema.ports.update().where(_C.id == port_id).values(kept=False))


def free(connection: sa.Connection, port_id: str) -> None:
    """Take a port from its server."""
    mine = schema.ports.update().where(_C.id == port_id)
    connection.execute(mine.values(**networks.FREED))


def find(
    connection: sa.Connection, port_id: str, project_id: str | None, owner: str, server: str
) -> Any:
    """Return the row of a port that no server has, for a ``server`` of the ``owner``.

    ``project_id`` None: who asks sees those of all projects. Raises PortNotFound, Conflict, and
    Invalid for a port of another project, in Nova's words.
    """
    row = connection.execute(sa.select(schema.ports).where(_C.id == port_id)).first()
    if row is None or project_id not in (None, row.project_id):
        raise PortNotFound(f"Port id {port_id} could not be found.")
    if row.project_id != owner:
        raise Invalid(f"Port {port_id} not usable for instance {server}.")
    if row.server_uuid:
        raise _in_use(port_id)
    return row


def give(
    connection: sa.Connection, port_id: str, server_uuid: str, position: int, tag: str | None
) -> None:
    """Give a port to a server. Raises Conflict if a server has got the port already."""
    values = {"server_uuid": server_uuid, "position": position, "tag": tag}
    free = (_C.id == port_id) & (_C.server_uuid == "")
    done = connection.execute(
        schema.ports.update().where(free).values(**values, **revisions.changed(schema.ports))
    )
    if done.rowcount != 1:
        raise _in_use(port_id)


# --- inner


def _in_use(port_id: str) -> Conflict:
    return Conflict(f"Port {port_id} is still in use.")


def _require_networks(
    connection: sa.Connection, network_ids: Sequence[str], viewer: str | None
) -> dict[str, networks.Network]:
    known = networks.named(connection, network_ids, viewer)
    for network_id in network_ids:
        if network_id not in known:
            raise NetworkNotFound(f"Network {network_id} could not be found.")
    return known


def _require_free_macs(connection: sa.Connection, asked: Sequence[tuple[str, str]]) -> None:
    """Raise Conflict if one of these (network, MAC address) is in use, or named twice.

    Where another gets it between this and the write, the transaction is repeated and finds it.
    """
    if not asked:
        return
    used = set(connection.execute(_MACS, {"macs": sorted({mac for _, mac in asked})}).scalars())
    for network_id, mac in asked:
        if mac in used:
            raise Conflict(
                f"Unable to complete operation for network {network_id}. The mac address {mac} is "
                "in use.",
                type="MacAddressInUse",
            )
        used.add(mac)


def _require_no_server(row: Any, what: str) -> None:
    if row.server_uuid:
        raise Conflict(
            f"The {what} of port {row.id} can't be changed while it is attached to server "
            f"{row.server_uuid}.",
            type="PortInUse",
        )


def _has(row: Any, asked: Sequence[FixedIp]) -> bool:
    """Return whether a port has just what is asked."""
    has = [(row.subnet_id, row.ip), (row.subnet6_id, row.ip6), *(row.more_addresses or ())]
    has = [one for one in has if one[1] is not None]
    return len(has) == len(asked) and all(
        any(
            wanted.subnet_id in (None, subnet_id) and wanted.ip_address in (None, ip)
            for subnet_id, ip in has
        )
        for wanted in asked
    )


def _addresses(
    connection: sa.Connection,
    pools: Pools,
    network_id: str,
    asked: Sequence[FixedIp] | None,
    anywhere: bool,
) -> Sequence[tuple[str, str]]:
    """Return (subnet, address) of a port, IPv4 first."""
    rows = pools.subnets(network_id)
    if asked is None:
        found = pools.one_of_each(rows)
        if found is None:
            raise _exhausted(network_id)
        return [(row.id, ip) for row, ip in found]
    if len(asked) > MOST_ADDRESSES:
        raise Invalid(
            "Invalid input for operation: Exceeded maximum amount of fixed ips per port.",
            type="InvalidInput",
        )
    given = [_address(connection, pools, network_id, one, anywhere) for one in asked]
    return sorted(given, key=lambda one: ":" in one[1])


def _columns(given: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the columns of a port's (subnet, address)."""
    inline, more = more_addresses.split(given)
    return {
        **networks.address_columns(inline),
        "more_addresses": more_addresses.column(more),
    }


def _address(
    connection: sa.Connection, pools: Pools, network_id: str, wanted: FixedIp, anywhere: bool
) -> tuple[str, str]:
    """Return (subnet, address) as it is asked for."""
    rows = pools.subnets(network_id)
    if wanted.subnet_id is not None:
        rows = [_subnet(connection, network_id, rows, wanted.subnet_id)]
    if wanted.ip_address is None:
        return _any_free(pools, network_id, rows)
    row = _row_of(rows, wanted)
    address = str(ipaddress.ip_address(wanted.ip_address))
    if not pools.is_free(row, address):
        raise Conflict(
            f"IP address {address} already allocated in subnet {row.id}",
            type="IpAddressAlreadyAllocated",
        )
    if not anywhere and not addresses.in_pools(ipaddress.ip_address(address), row):
        raise Forbidden(
            f"rule:create_port:fixed_ips:ip_address is disallowed by policy: {address} is not in "
            "the subnet's allocation pool."
        )
    pools.take(row, address)
    return row.id, address


def _any_free(pools: Pools, network_id: str, rows: Sequence[Any]) -> tuple[str, str]:
    found = pools.next_free(rows)
    if found is None:
        raise _exhausted(network_id)
    return found[0].id, found[1]


def _exhausted(network_id: str) -> Conflict:
    return Conflict(
        f"No more IP addresses available on network {network_id}.",
        type="IpAddressGenerationFailure",
    )


def _subnet(
    connection: sa.Connection, network_id: str, rows: Sequence[Any], subnet_id: str
) -> Any:
    for row in rows:
        if row.id == subnet_id:
            return row
    known = sa.select(schema.subnets.c.id).where(schema.subnets.c.id == subnet_id)
    if connection.execute(known).first() is None:
        raise SubnetNotFound(f"Subnet {subnet_id} could not be found.")
    raise Invalid(
        f"Invalid input for operation: Failed to create port on network {network_id}, because "
        f"fixed_ips included invalid subnet {subnet_id}.",
        type="InvalidInput",
    )


def _row_of(rows: Sequence[Any], wanted: FixedIp) -> Any:
    """Return the subnet that may give the address."""
    address = ipaddress.ip_address(str(wanted.ip_address))
    for row in rows:
        if addresses.usable(address, ipaddress.ip_network(row.cidr)):
            return row
    where, name = ("any of the subnets on the specified network", "Network")
    if wanted.subnet_id is not None:
        where, name = ("the specified subnet", "Subnet")
    raise Invalid(
        f"IP address {wanted.ip_address} is not a valid IP for {where}.",
        type=f"InvalidIpFor{name}",
    )
