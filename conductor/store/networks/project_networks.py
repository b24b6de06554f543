"""Networks that are made through the API: their rows, and who may share them.

Refusals are Neutron's: its words, and the ``type`` of its answers in the details.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import Conflict
from common.resources import vnets
from common.resources.vnets import VniRange
from common.rpc import deadlines
from conductor.rpc.networks.networks import NewNetwork
from conductor.store.networks import network_locks, network_shares, revisions, subnet_rules
from conductor.store.networks import vnets as vnet_rows
from conductor.store.networks.pools import ANYWHERE, Within
from conductor.store.networks.segments import Segment, Segments, TagRange, invalid_input
from conductor.store.networks.vnets import State, Status, Vnet
from conductor.store.outbox import filter_outbox
from conductor.store.quotas import quotas
from db.reads.networks.network_access import EVERYBODY
from db.schema import networks, ports, subnets

_C = networks.c
#: no project's name has a space
_LOCK = "default network"
MTU = 1500


def create(
    connection: sa.Connection,
    wanted: Sequence[NewNetwork],
    ranges: Sequence[TagRange],
    vnis: Sequence[VniRange] = (),
    within: Within = ANYWHERE,
) -> list[str]:
    """Write networks, with the vnets that are to be made for them; return their ids.

    Raises what ``Segments.choose`` raises, and Invalid for an MTU above the bridge's.
    """
    segments = Segments(connection, ranges, vnis, within)
    made = []
    for new in wanted:
        if new.is_default and new.external:
            require_no_default(connection, None)
        segment = segments.choose(new.network_type, new.bridge, new.vlan)
        network_id = deadlines.new_uuid()
        on_vnet = segment.vni is not None
        most = vnets.MTU if on_vnet else _mtu_of(connection, segment.bridge)
        _require_small(new.mtu, most)
        bridge = vnet_rows.free_name(connection, network_id) if on_vnet else segment.bridge
        row = {
            "id": network_id,
            "project_id": new.project_id,
            "name": new.name,
            "description": new.description,
            "bridge": bridge,
            "vlan": segment.vlan,
            "zone": segment.zone,
            "vni": segment.vni,
            "status": Status.BUILD if on_vnet else Status.ACTIVE,
            "mtu": new.mtu or most,
            "external": new.external,
            "is_default": new.is_default and new.external,
            "admin_state_up": None if new.admin_state_up else False,
            "port_security": new.port_security,
            "discovered": False,
            "availability_zone_hints": list(new.availability_zone_hints) or None,
            **_now(),
        }
        connection.execute(networks.insert(), [row])
        vnet_rows.insert(connection, _vnets(network_id, bridge, segment))
        if new.shared:
            network_shares.insert(connection, row["id"], EVERYBODY, new.project_id)
        made.append(network_id)
    return made


def _vnets(network_id: str, name: str, segment: Segment) -> list[Vnet]:
    zone, vni = str(segment.zone), int(segment.vni or 0)
    return [
        Vnet(cluster, network_id, name, zone, vni, State.MAKING) for cluster in segment.clusters
    ]


def is_there(connection: sa.Connection, network_id: str) -> bool:
    """Lock a network's row until the transaction ends; return whether there is one."""
    mine = sa.select(_C.id).where(_C.id == network_id).with_for_update()
    return connection.execute(mine).first() is not None


def owner(connection: sa.Connection, network_id: str) -> str:
    """Return a network's project; empty: the network is the operator's, or deleted."""
    return str(connection.scalar(sa.select(_C.project_id).where(_C.id == network_id)) or "")


def has_vnet(connection: sa.Connection, network_id: str, mtu: int | None) -> None:
    """Give a network whose maker named none the MTU of its zone, now that it is known."""
    mine = (_C.id == network_id) & (_C.mtu == vnets.MTU)
    if mtu is not None:
        connection.execute(networks.update().where(mine).values(mtu=mtu))


def change(connection: sa.Connection, network_id: str, asked: Mapping[str, Any]) -> None:
    """Change attributes of a network: its columns, and ``shared``.

    Neither ``external`` nor ``shared`` of a cluster's network can be changed. Raises
    NetworkNotFound, Conflict, Invalid.
    """
    row = network_locks.locked(connection, network_id)
    if asked.get("is_default") and asked.get("external", row.external):
        require_no_default(connection, network_id)
    fixed = [name for name in ("external", "shared") if name in asked]
    if row.discovered and fixed:
        raise given_by_cluster(row)
    if "mtu" in asked:
        _check_mtu(connection, row, asked["mtu"])
    if "shared" in asked:
        network_shares.with_all(connection, row, asked["shared"])
    values = {name: value for name, value in asked.items() if name != "shared"}
    if not asked.get("external", row.external) and (row.is_default or asked.get("is_default")):
        # As in Neutron, whose default network is an external one.
        values["is_default"] = False
    if "admin_state_up" in asked:
        on = sa.select(ports.c.server_uuid).where(ports.c.network_id == network_id)
        filter_outbox.add(connection, connection.execute(on.distinct()).scalars().all())
    connection.execute(
        networks.update()
        .where(_C.id == network_id)
        .values(**values, **revisions.changed(networks))
    )


def delete(connection: sa.Connection, network_id: str) -> None:
    """Delete a network with its subnets and shares. Raises NetworkNotFound, Conflict.

    Its vnets are the caller's to remove, in the same transaction.
    """
    row = network_locks.locked(connection, network_id)
    if row.discovered:
        raise given_by_cluster(row)
    if connection.execute(sa.select(ports.c.id).where(ports.c.network_id == network_id)).first():
        raise Conflict(
            f"Unable to complete operation on network {network_id}. There are one or more ports "
            "still in use on the network.",
            type="NetworkInUse",
        )
    connection.execute(subnets.delete().where(subnets.c.network_id == network_id))
    network_shares.delete_all(connection, network_id)
    connection.execute(networks.delete().where(_C.id == network_id))


def require_no_default(connection: sa.Connection, network_id: str | None) -> None:
    """Raise Conflict if another network is the default one. Who makes one so waits for others."""
    quotas.lock(connection, _LOCK)
    there = connection.execute(sa.select(_C.id).where(_C.is_default)).scalars().first()
    if there not in (None, network_id):
        raise Conflict(
            f"A default external network already exists: {there}.",
            type="DefaultExternalNetworkExists",
        )


def given_by_cluster(row: Any) -> Conflict:
    """Return the refusal to change what a cluster says."""
    return Conflict(
        f"Network {row.id} is bridge {row.bridge} of the Proxmox VE nodes: only its name, "
        "description and MTU can be changed here.",
        type="NetworkOfCluster",
    )


# --- inner


def _now() -> dict[str, Any]:
    now = clock.utcnow()
    return {"created_at": now, "updated_at": now}


def _mtu_of(connection: sa.Connection, bridge: str) -> int:
    """Return the MTU of a bridge, which its VLANs can't exceed."""
    query = sa.select(_C.mtu).where(_C.bridge == bridge, _C.discovered)
    return int(connection.execute(query).scalar() or MTU)


def _require_small(mtu: int | None, most: int) -> None:
    """Raise Invalid for more than the bridge's: Proxmox VE doesn't start a VM with it."""
    if mtu is not None and mtu > most:
        raise invalid_input(f"Requested MTU is too big, maximum is {most}")


def _check_mtu(connection: sa.Connection, row: Any, mtu: int) -> None:
    if row.vni is not None:
        _require_small(mtu, max(int(row.mtu), vnets.MTU))
    elif not row.discovered:
        _require_small(mtu, _mtu_of(connection, row.bridge))
    if mtu >= subnet_rules.LEAST_MTU_6:
        return
    cidrs = sa.select(subnets.c.cidr).where(subnets.c.network_id == row.id)
    if any(":" in cidr for cidr in connection.execute(cidrs).scalars()):
        raise Conflict(
            f"MTU of {row.id} is not valid, subnet requires a minimum of "
            f"{subnet_rules.LEAST_MTU_6}",
            type="NetworkMTUSubnetConflict",
        )
