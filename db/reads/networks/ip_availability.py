"""How many addresses of each network's subnets there are, and are in use. Two statements."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from db.schema import networks, port_addresses, ports, subnets


@dataclass
class SubnetUse:
    """The addresses of one subnet: those of its pools, and those that ports have."""

    id: str
    name: str
    cidr: str
    ip_version: int
    total: int
    used: int


@dataclass
class NetworkUse:
    """The addresses of one network."""

    id: str
    name: str
    project_id: str
    subnets: list[SubnetUse] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(one.total for one in self.subnets)

    @property
    def used(self) -> int:
        """How many ports have."""
        return sum(one.used for one in self.subnets)


#: where ports have the subnets of their addresses
ADDRESSES = (ports.c.subnet_id, ports.c.subnet6_id, port_addresses.c.subnet_id)
_VERSION = sa.case((subnets.c.cidr.contains(":"), 6), else_=4)
_COLUMNS: Mapping[str, sa.ColumnElement[Any]] = {
    "network_id": networks.c.id,
    "network_name": networks.c.name,
    "project_id": networks.c.project_id,
    "ip_version": _VERSION,
}


def of_networks(connection: sa.Connection, where: Mapping[str, Sequence[Any]]) -> list[NetworkUse]:
    """Return networks by name; ``where``: column (see above) → the values it may have."""
    query = (
        sa.select(
            networks.c.id,
            networks.c.name,
            networks.c.project_id,
            subnets.c.id.label("subnet_id"),
            subnets.c.name.label("subnet_name"),
            subnets.c.cidr,
            subnets.c.pools,
            subnets.c.pool_start,
            subnets.c.pool_end,
        )
        .select_from(networks.outerjoin(subnets, subnets.c.network_id == networks.c.id))
        .where(*(_COLUMNS[name].in_(values) for name, values in where.items()))
        .order_by(networks.c.name, networks.c.id, subnets.c.created_at, subnets.c.id)
    )
    rows = connection.execute(query).all()
    used = _used(connection, {row.subnet_id for row in rows if row.subnet_id})
    found: dict[str, NetworkUse] = {}
    for row in rows:
        network = found.setdefault(row.id, NetworkUse(row.id, row.name, row.project_id))
        if row.subnet_id is not None:
            network.subnets.append(_subnet(row, used.get(row.subnet_id, 0)))
    return list(found.values())


def _subnet(row: Any, used: int) -> SubnetUse:
    pools = [(row.pool_start, row.pool_end)] if row.pools is None else row.pools
    total = sum(_number(last) - _number(first) + 1 for first, last in pools)
    version = 6 if ":" in row.cidr else 4
    return SubnetUse(row.subnet_id, row.subnet_name, row.cidr, version, total, used)


def _number(address: str) -> int:
    return int(ipaddress.ip_address(address))


def _used(connection: sa.Connection, subnet_ids: set[str]) -> dict[str, int]:
    """Return how many addresses of each subnet ports have."""
    if not subnet_ids:
        return {}
    wanted = sorted(subnet_ids)
    given = sa.union_all(
        *(sa.select(column.label("subnet")).where(column.in_(wanted)) for column in ADDRESSES)
    ).subquery()
    query = sa.select(given.c.subnet, sa.func.count()).group_by(given.c.subnet)
    return {subnet: int(count) for subnet, count in connection.execute(query)}
