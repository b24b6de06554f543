"""The network that is made for a project whose users name none (auto-allocated topology)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from common.errors import Conflict
from common.resources.vnets import VniRange
from conductor.rpc.networks.networks import NewNetwork, NewSubnet
from conductor.store.networks import project_networks, project_subnets
from conductor.store.networks.pools import Within
from conductor.store.networks.segments import TagRange
from conductor.store.quotas import network_quotas, quotas
from db.schema import networks

#: Neutron's names
NETWORK, SUBNET = "auto_allocated_network", "auto_allocated_subnet_v"


def find(connection: sa.Connection, project_id: str) -> str | None:
    """Return the id of a project's network, None if it has none."""
    mine = (networks.c.project_id == project_id) & networks.c.auto_allocated
    found = connection.execute(sa.select(networks.c.id).where(mine)).scalar()
    return None if found is None else str(found)


def locked(connection: sa.Connection, project_id: str) -> str | None:
    """As ``find``; others who want the project's wait until the transaction ends."""
    quotas.lock(connection, project_id)
    return find(connection, project_id)


def make(
    connection: sa.Connection,
    project_id: str,
    segments: tuple[Sequence[TagRange], Sequence[VniRange]],
    cidr: str,
    limits: Mapping[str, int],
    within: Within,
) -> str:
    """Make a project's network with its subnet; return its id. Its vnets are the caller's to make.

    ``limits`` are those of projects without limits of their own. Raises Conflict where nothing is
    left, and Unsettled.
    """
    for kind in ("network", "subnet"):
        network_quotas.take(connection, kind, [project_id], limits)
    new = NewNetwork(project_id, NETWORK)
    [network_id] = project_networks.create(connection, [new], *segments, within)
    # Nothing routes there: a default route would lead to nobody.
    version = ipaddress.ip_network(cidr).version
    attributes = {"cidr": cidr, "ip_version": version, "gateway_ip": None}
    subnet = NewSubnet(project_id, network_id, f"{SUBNET}{version}", attributes=attributes)
    project_subnets.create(connection, [subnet])
    mine = networks.c.id == network_id
    connection.execute(networks.update().where(mine).values(auto_allocated=True))
    return network_id


def delete(connection: sa.Connection, project_id: str) -> str | None:
    """Delete a project's network, if it has one; return its id.

    Its vnets are the caller's to remove. Raises Conflict while it has ports.
    """
    found = locked(connection, project_id)
    if found is not None:
        project_networks.delete(connection, found)
    return found


def failure(why: str) -> Conflict:
    """Return the refusal, in Neutron's words."""
    return Conflict(f"Deployment error: {why}.", type="AutoAllocationFailure")
