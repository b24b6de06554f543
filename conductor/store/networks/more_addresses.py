"""Addresses of a port beyond the first one of each family.

The port's row has them for its readers; a table of their own holds that no two ports have one.
Rows of deleted ports hold nothing: they are removed when their address is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from common.messages.commands import Address
from db.schema import port_addresses, ports, subnets

_C = port_addresses.c
#: (subnet, address)
Given = tuple[str, str]


def split(given: Sequence[Given]) -> tuple[list[Given], list[Given]]:
    """Return the first address of each family, and the others; IPv4 comes first."""
    first: dict[bool, Given] = {}
    for one in given:
        first.setdefault(":" in one[1], one)
    inline = [first[six] for six in sorted(first)]
    return inline, [one for one in given if one not in inline]


def column(more: Sequence[Given]) -> list[list[str]] | None:
    """Return the value of the port's column."""
    return [list(one) for one in more] or None


def write(connection: sa.Connection, port_id: str, more: Sequence[Given]) -> None:
    """Have a port have these addresses, which ``Pools`` has found free, and no others."""
    connection.execute(port_addresses.delete().where(_C.port_id == port_id))
    if not more:
        return
    there = sa.exists().where(ports.c.id == _C.port_id)
    for subnet_id, ip in more:
        mine = (_C.subnet_id == subnet_id) & (_C.ip == ip)
        connection.execute(port_addresses.delete().where(mine, ~there))
    rows = [{"port_id": port_id, "subnet_id": subnet, "ip": ip} for subnet, ip in more]
    connection.execute(port_addresses.insert(), rows)


def resolved(
    connection: sa.Connection, stored: Iterable[Sequence[Sequence[str]] | None]
) -> list[tuple[Address, ...]]:
    """Return the addresses of each of some ports' columns. One statement, if there are any."""
    columns = [list(one or ()) for one in stored]
    wanted = {subnet for one in columns for subnet, _ in one}
    if not wanted:
        return [()] * len(columns)
    query = sa.select(subnets).where(subnets.c.id.in_(sorted(wanted)))
    rows: Mapping[str, Any] = {row.id: row for row in connection.execute(query)}
    return [tuple(_address(rows[subnet], ip) for subnet, ip in one) for one in columns]


def _address(row: Any, ip: str) -> Address:
    routes = tuple((where, hop) for where, hop in row.host_routes or ())
    return Address(ip, row.cidr, row.gateway_ip, tuple(row.dns_nameservers or ()), routes)
