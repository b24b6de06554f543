"""Ports of adopted VMs."""

from __future__ import annotations

import contextlib

import sqlalchemy as sa

from common import clock, ids
from common.errors import Conflict, Invalid
from common.messages.commands import Nic
from common.messages.facts import NicFacts
from conductor.store import addresses
from conductor.store.networks import Network
from conductor.store.pools import Pools
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

    Raises Conflict when another server has its MAC.
    """
    taken = connection.execute(sa.select(ports.c.server_uuid).where(ports.c.mac == nic.mac))
    if (other := taken.scalar()) is not None:
        raise Conflict(f"MAC address {nic.mac} is that of a port of server {other}.")
    subnet, ip = None, None
    if nic.ip is not None:
        pools = Pools(connection, [network.id])
        with contextlib.suppress(Invalid):
            found, address = addresses.chosen(pools.subnets(network.id), nic.ip, anywhere=True)
            if pools.is_free(found, address):
                subnet, ip = found, address
    port_id = ids.new_uuid()
    connection.execute(
        ports.insert().values(
            id=port_id,
            network_id=network.id,
            subnet_id=subnet.id if subnet else None,
            server_uuid=server_uuid,
            project_id=project_id,
            position=position,
            mac=nic.mac,
            ip=ip,
            created_at=clock.utcnow(),
        )
    )
    return Nic(port_id, network.id, network.name, network.bridge, nic.mac, ip=ip)
