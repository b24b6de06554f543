"""Networks of projects that the record lost, as clusters show them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import Conflict
from common.resources import vnets
from conductor.rpc.networks.networks import NewSubnet
from conductor.store.networks import network_shares, project_networks, project_subnets
from conductor.store.networks import vnets as vnet_rows
from conductor.store.networks.vnets import State, Status, Vnet
from db.reads.networks.network_access import own_or_shared
from db.schema import networks, subnets

_C = networks.c


def insert(
    connection: sa.Connection,
    network_id: str,
    project_id: str,
    bridge: str,
    vlan: int | None,
    made: Collection[Vnet],
) -> None:
    """Write a network; ``made``: its vnets. Raises Conflict if another network is on its wire."""
    same = (_C.bridge == bridge) & (_C.segment == (vlan or 0))
    if made:
        one = next(iter(made))
        same |= (_C.zone == one.zone) & (_C.vni == one.vni)
    other = connection.scalar(sa.select(_C.id).where(same | (_C.id == network_id)))
    if other is not None:
        raise Conflict(f"Network {other} is on the same wire.")
    now = clock.utcnow()
    on_vnet: dict[str, Any] = {"mtu": project_networks.MTU}
    for one in made:
        on_vnet = {"mtu": vnets.MTU, "zone": one.zone, "vni": one.vni}
    connection.execute(
        networks.insert(),
        [
            {
                **{"id": network_id, "project_id": project_id, "bridge": bridge, "vlan": vlan},
                **{"name": f"adopted-{network_id[:8]}", "description": "", "discovered": False},
                **{"status": Status.ACTIVE, "created_at": now, "updated_at": now},
                **on_vnet,
            }
        ],
    )
    vnet_rows.insert(connection, list(made))


def vnet(cluster: str, network_id: str, name: str, zone: str, vni: int) -> Vnet:
    """Return a vnet that was seen applied."""
    return Vnet(cluster, network_id, name, zone, vni, State.ACTIVE)


def add_subnets(
    connection: sa.Connection, network_id: str, wanted: Iterable[Mapping[str, Any]]
) -> None:
    """Write those subnets that a network lacks. Raises NetworkNotFound, Invalid, Conflict."""
    there = set(
        connection.scalars(sa.select(subnets.c.cidr).where(subnets.c.network_id == network_id))
    )
    owner = project_networks.owner(connection, network_id)
    new = [
        NewSubnet(owner, network_id, attributes=one) for one in wanted if one["cidr"] not in there
    ]
    if new:
        project_subnets.create(connection, new)


def share(connection: sa.Connection, network_id: str, projects: Iterable[str]) -> None:
    """Share a network with those projects that may not use it, though they have servers on it."""
    owner = project_networks.owner(connection, network_id)
    for project_id in sorted(projects):
        may = sa.select(_C.id).where(_C.id == network_id, own_or_shared(project_id))
        if connection.execute(may).first() is None:
            network_shares.insert(connection, network_id, project_id, owner)


def cidrs(connection: sa.Connection) -> dict[str, frozenset[str]]:
    """Return the CIDRs of all subnets, by network."""
    found: dict[str, set[str]] = {}
    for network_id, cidr in connection.execute(sa.select(subnets.c.network_id, subnets.c.cidr)):
        found.setdefault(network_id, set()).add(cidr)
    return {network_id: frozenset(those) for network_id, those in found.items()}
