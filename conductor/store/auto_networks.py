"""The network that is made for a project whose users name none (auto-allocated topology)."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

import sqlalchemy as sa

from common.errors import Conflict
from conductor.messages import NewNetwork, NewSubnet
from conductor.store import project_networks, project_subnets, quotas
from conductor.store.segments import TagRange
from db.schema import networks

#: Neutron's names
NETWORK, SUBNET = "auto_allocated_network", "auto_allocated_subnet_v"


def find(connection: sa.Connection, project_id: str) -> str | None:
    """Return the id of a project's network, None if it has none."""
    mine = (networks.c.project_id == project_id) & networks.c.auto_allocated
    found = connection.execute(sa.select(networks.c.id).where(mine)).scalar()
    return None if found is None else str(found)


def ensure(
    connection: sa.Connection,
    project_id: str,
    ranges: Sequence[TagRange],
    cidr: str,
    limits: tuple[int, int],
) -> str:
    """Return the id of a project's network, which is made with its subnet if there is none.

    ``limits`` are those of networks and of subnets. Others who want the project's wait. Raises
    Conflict where nothing is left.
    """
    quotas.lock(connection, project_id)
    found = find(connection, project_id)
    if found is not None:
        return found
    for kind, limit in zip(("network", "subnet"), limits, strict=True):
        project_networks.take_quota(connection, kind, [project_id], limit)
    new = NewNetwork(project_id, NETWORK)
    [network_id] = project_networks.create(connection, [new], ranges)
    # Nothing routes there: a default route would lead to nobody.
    version = ipaddress.ip_network(cidr).version
    attributes = {"cidr": cidr, "ip_version": version, "gateway_ip": None}
    subnet = NewSubnet(project_id, network_id, f"{SUBNET}{version}", attributes=attributes)
    project_subnets.create(connection, [subnet])
    mine = networks.c.id == network_id
    connection.execute(networks.update().where(mine).values(auto_allocated=True))
    return network_id


def delete(connection: sa.Connection, project_id: str) -> None:
    """Delete a project's network, if it has one. Raises Conflict while it has ports."""
    quotas.lock(connection, project_id)
    found = find(connection, project_id)
    if found is not None:
        project_networks.delete(connection, found)


def failure(why: str) -> Conflict:
    """Return the refusal, in Neutron's words."""
    return Conflict(f"Deployment error: {why}.", type="AutoAllocationFailure")
