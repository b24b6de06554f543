"""The vnets that clusters have, or are to have, for networks of projects.

A row remains until its vnet is confirmed absent, even if its network is deleted: its VNI is in
use. To change the rows of a network and of its vnets, lock the network's row first.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import clock
from common.resources import vnets
from common.resources.vnets import VniRange
from conductor.store.networks import cluster_vnets, revisions
from db.schema import hosts, networks
from db.schema import vnets as table

_C = table.c


class State(enum.StrEnum):
    """What becomes of a vnet."""

    MAKING = "making"  #: an operation makes it
    ACTIVE = "active"  #: it was seen applied
    ERROR = "error"  #: it can't be made; parts of it may exist
    REMOVING = "removing"  #: its network is deleted; an operation removes it


class Status(enum.StrEnum):
    """What a network shows; Neutron's words."""

    BUILD = "BUILD"  #: no cluster has its vnet yet
    ACTIVE = "ACTIVE"
    ERROR = "ERROR"  #: no cluster can have it


@dataclass(frozen=True)
class Vnet:
    """The vnet of a network in a cluster."""

    cluster: str
    network_id: str
    vnet: str
    zone: str
    vni: int
    state: State


@dataclass(frozen=True)
class ZoneHost:
    """A host with the zones of its node."""

    host: str
    cluster: str
    node: str
    zones: tuple[str, ...]


def zone_hosts(connection: sa.Connection) -> list[ZoneHost]:
    """Return the hosts whose nodes answer, by name."""
    facts = hosts.c.facts
    query = sa.select(
        hosts.c.host, hosts.c.cluster, hosts.c.node, facts["zones"], facts["online"]
    ).order_by(hosts.c.host)
    return [
        ZoneHost(host, cluster, node, tuple(zones or ()))
        for host, cluster, node, zones, online in connection.execute(query)
        if online is not False
    ]


def clusters_with(found: Iterable[ZoneHost], one: VniRange) -> list[str]:
    """Return the clusters of a range that have its zone, by name."""
    return sorted(
        {host.cluster for host in found if one.zone in host.zones and one.holds(host.cluster)}
    )


def has_zone(connection: sa.Connection, vnet: Vnet) -> bool:
    """Return whether a node of the vnet's cluster has its zone, as far as its agent sees."""
    found = zone_hosts(connection)
    return any(one.cluster == vnet.cluster and vnet.zone in one.zones for one in found)


def used(connection: sa.Connection, zone: str, clusters: Collection[str]) -> set[int]:
    """Return the VNIs in use in zones of this name, and in whatever zone of these clusters: also
    those that are being removed.

    Proxmox VE takes no VNI twice in a cluster, in whatever zones (VxlanPlugin,
    ``vnet_update_hook``).
    """
    of_networks = sa.select(networks.c.vni).where(networks.c.zone == zone)
    of_vnets = sa.select(_C.vni).where((_C.zone == zone) | _C.cluster.in_(clusters))
    return set(connection.execute(of_networks.union(of_vnets)).scalars())


def used_by_others(
    connection: sa.Connection, clusters: Collection[str], zone: str | None = None
) -> set[int]:
    """Return the tags of vnets that clusters have and the record doesn't know; ``zone``: only its.

    Tags of zones of another kind are among them, as a cluster doesn't say what kind they are.
    """
    return {
        tag
        for cluster, _, where, tag in cluster_vnets.unknown(connection)
        if tag and (where == zone or (zone is None and cluster in clusters))
    }


def free_name(connection: sa.Connection, network_id: str) -> str:
    """Return a name for a network's vnets that no other one has."""
    turn = 0
    there = {name for _, name, _, _ in cluster_vnets.unknown(connection)}
    while True:
        name = vnets.name(network_id, turn)
        taken = sa.union_all(
            sa.select(_C.network_id).where(_C.vnet == name),
            sa.select(networks.c.id).where(networks.c.bridge == name),
        )
        if name not in there and connection.execute(taken).first() is None:
            return name
        turn += 1


def insert(connection: sa.Connection, made: Sequence[Vnet]) -> None:
    """Write vnets that are to be made."""
    now = clock.utcnow()
    rows = [{**vars(one), "created_at": now} for one in made]
    if rows:
        connection.execute(table.insert(), rows)


def of_network(connection: sa.Connection, network_id: str) -> list[Vnet]:
    """Return the vnets of a network, by cluster."""
    query = _query().where(_C.network_id == network_id).order_by(_C.cluster)
    return [_vnet(row) for row in connection.execute(query)]


def get(connection: sa.Connection, network_id: str, cluster: str) -> Vnet | None:
    """Return the vnet of a network in a cluster."""
    mine = (_C.network_id == network_id) & (_C.cluster == cluster)
    row = connection.execute(_query().where(mine)).first()
    return None if row is None else _vnet(row)


def every(connection: sa.Connection) -> list[Vnet]:
    """Return all vnets."""
    return [_vnet(row) for row in connection.execute(_query())]


def set_state(
    connection: sa.Connection, network_id: str, cluster: str, state: State, *was: State
) -> bool:
    """Set the state of a vnet that has one of these; return whether it had."""
    mine = (_C.network_id == network_id) & (_C.cluster == cluster) & _C.state.in_(was)
    done = connection.execute(table.update().where(mine).values(state=state))
    return bool(done.rowcount)


def make_with(connection: sa.Connection, network_id: str, vni: int) -> list[Vnet]:
    """Give a network that no cluster has another VNI; return its vnets, which are to be made."""
    mine = networks.c.id == network_id
    values = {"vni": vni, **revisions.changed(networks)}
    connection.execute(networks.update().where(mine).values(**values))
    theirs = _C.network_id == network_id
    connection.execute(table.update().where(theirs).values(vni=vni, state=State.MAKING))
    return of_network(connection, network_id)


def delete(connection: sa.Connection, network_id: str, cluster: str) -> None:
    """Forget a vnet confirmed absent."""
    mine = (_C.network_id == network_id) & (_C.cluster == cluster)
    connection.execute(table.delete().where(mine, _C.state == State.REMOVING))


def settle(connection: sa.Connection, network_id: str) -> None:
    """Set a network's status by its vnets: active as soon as one cluster has its vnet."""
    states = {one.state for one in of_network(connection, network_id)}
    if State.ACTIVE in states:
        status = Status.ACTIVE
    else:
        status = Status.BUILD if State.MAKING in states else Status.ERROR
    mine = (networks.c.id == network_id) & (networks.c.status != status)
    connection.execute(
        networks.update().where(mine).values(status=status, updated_at=clock.utcnow())
    )


def lacking(connection: sa.Connection, ranges: Iterable[VniRange]) -> list[Vnet]:
    """Return the vnets that networks lack in clusters with their zone."""
    found = zone_hosts(connection)
    places = {(cluster, one.zone) for one in ranges for cluster in clusters_with(found, one)}
    missing: list[Vnet] = []
    for cluster, zone in sorted(places):
        there = sa.exists().where(_C.network_id == networks.c.id, _C.cluster == cluster)
        query = sa.select(networks.c.id, networks.c.bridge, networks.c.vni).where(
            networks.c.zone == zone, ~there
        )
        missing += [
            Vnet(cluster, row.id, row.bridge, zone, row.vni, State.MAKING)
            for row in connection.execute(query.order_by(networks.c.id))
        ]
    return missing


def unready(connection: sa.Connection, bridges: Iterable[str]) -> list[str]:
    """Return those of these bridges that are vnets in the making: no cluster has them yet."""
    wanted = sorted({one for one in bridges if vnets.is_ours(one)})
    if not wanted:
        return []
    query = sa.select(networks.c.bridge).where(
        networks.c.bridge.in_(wanted), networks.c.status == Status.BUILD
    )
    return list(connection.execute(query).scalars())


def _query() -> sa.Select[Any]:
    return sa.select(_C.cluster, _C.network_id, _C.vnet, _C.zone, _C.vni, _C.state)


def _vnet(row: Any) -> Vnet:
    cluster, network_id, vnet, zone, vni, state = row
    return Vnet(cluster, network_id, vnet, zone, vni, State(state))
