"""Subnets that are made through the API.

Refusals are Neutron's: its words, and the ``type`` of its answers in the details.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import Conflict, SubnetNotFound
from common.rpc import deadlines
from conductor.rpc.networks.networks import NewSubnet
from conductor.store.networks import addresses, network_locks, revisions, subnet_rules
from conductor.store.networks.pools import of_port
from conductor.store.networks.segments import invalid_input
from db.schema import networks, port_addresses, ports, subnets

_C = subnets.c


def create(connection: sa.Connection, wanted: Sequence[NewSubnet]) -> list[str]:
    """Write subnets; return their ids. Raises NetworkNotFound, Invalid, Conflict."""
    # Lock networks in ID order, so that concurrent creates wait instead of deadlocking.
    locked = {
        network_id: network_locks.locked(connection, network_id)
        for network_id in sorted({new.network_id for new in wanted})
    }
    return [_create(connection, locked[new.network_id], new) for new in wanted]


def _create(connection: sa.Connection, network: Any, new: NewSubnet) -> str:
    values = subnet_rules.columns_of_new(new.attributes)
    there = sa.select(_C.cidr).where(_C.network_id == network.id)
    if subnet_rules.overlaps(values["cidr"], connection.execute(there).scalars()):
        raise invalid_input(
            f"Requested subnet with cidr: {values['cidr']} for network: {network.id} overlaps "
            "with another subnet"
        )
    if ":" in values["cidr"] and network.mtu < subnet_rules.LEAST_MTU_6:
        raise Conflict(
            f"MTU of {network.id} is not valid, subnet requires a minimum of "
            f"{subnet_rules.LEAST_MTU_6}",
            type="NetworkMTUSubnetConflict",
        )
    now = clock.utcnow()
    row = {
        "id": deadlines.new_uuid(),
        "network_id": network.id,
        "project_id": new.project_id,
        "name": new.name,
        "description": new.description,
        "configured": False,
        "created_at": now,
        "updated_at": now,
        **values,
    }
    connection.execute(subnets.insert(), [row])
    revisions.bump(connection, networks, network.id)
    return str(row["id"])


def change(connection: sa.Connection, subnet_id: str, asked: Mapping[str, Any]) -> None:
    """Change a subnet. Raises SubnetNotFound, Invalid, Conflict."""
    row = _locked(connection, subnet_id)
    values = subnet_rules.columns_of_change(row, addresses.pools_of(row), asked)
    gateway = values.get("gateway_ip")
    if gateway is not None and gateway != row.gateway_ip:
        _require_free(connection, row, gateway)
    values |= {name: asked[name] for name in ("name", "description") if name in asked}
    connection.execute(
        subnets.update().where(_C.id == subnet_id).values(**values, **revisions.changed(subnets))
    )
    revisions.bump(connection, networks, row.network_id)


def delete(connection: sa.Connection, subnet_id: str) -> None:
    """Delete a subnet. Raises SubnetNotFound, Conflict."""
    row = _locked(connection, subnet_id)
    more = sa.select(port_addresses.c.port_id).where(port_addresses.c.subnet_id == subnet_id)
    used = sa.or_(
        ports.c.subnet_id == subnet_id, ports.c.subnet6_id == subnet_id, ports.c.id.in_(more)
    )
    if connection.execute(sa.select(ports.c.id).where(used)).first() is not None:
        raise Conflict(
            f"Unable to complete operation on subnet {subnet_id}: One or more ports have an IP "
            "allocation from this subnet.",
            type="SubnetInUse",
        )
    connection.execute(subnets.delete().where(_C.id == subnet_id))
    revisions.bump(connection, networks, row.network_id)


def _locked(connection: sa.Connection, subnet_id: str) -> Any:
    """Return a subnet's row, locked. Raises SubnetNotFound, Conflict."""
    row = connection.execute(
        sa.select(subnets).where(_C.id == subnet_id).with_for_update()
    ).first()
    if row is None:
        raise SubnetNotFound(f"Subnet {subnet_id} could not be found.")
    if row.configured:
        raise Conflict(
            f"Subnet {subnet_id} is written in [networks] subnets of the conductors' "
            "configuration, which can't be changed here.",
            type="SubnetOfConfiguration",
        )
    return row


def _require_free(connection: sa.Connection, row: Any, address: str) -> None:
    if of_port(connection, row, address):
        raise Conflict(
            f"Unable to complete operation for network {row.network_id}. The IP address "
            f"{address} is in use.",
            type="IpAddressInUse",
        )
