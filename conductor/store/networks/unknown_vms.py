"""VMs and containers that the record doesn't know, and the addresses of their interfaces.

While they are seen, no port gets one of their MAC addresses, or of their addresses on the same
network. It doesn't matter who made them: the record may have lost its own, as after a restore.
"""

from __future__ import annotations

import datetime
import itertools
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from common import clock
from common.messages.facts import OtherVm, VmFacts
from db.schema import cloud_identity, clusters, networks, other_nics, other_vms, servers, subnets

#: in the place of a cluster's name, which has no such sign
EVERY = "*"

_V, _N = other_vms.c, other_nics.c
#: kinds that have interfaces which may run
KINDS = frozenset({"VM", "container"})
#: after this time what was read is read again
AGAIN_SECONDS = 3600.0
#: the same of what could not be read
SOON_SECONDS = 60.0

_NEVER = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_OF: sa.BindParameter[str] = sa.bindparam("subnet_id")
_ON_WIRE = other_nics.join(
    networks, (_N.bridge == networks.c.bridge) & (_N.segment == networks.c.segment)
).join(subnets, subnets.c.network_id == networks.c.id)
#: the addresses that they have on a subnet's network; ``subnet_id`` is a parameter
ADDRESSES = sa.select(_N.ip).select_from(_ON_WIRE).where(subnets.c.id == _OF, _N.ip.is_not(None))


@dataclass(frozen=True)
class Compared:
    """How a report of a cluster's VMs differs from the stored VMs of others."""

    came: tuple[VmFacts, ...] = ()
    """New ones, moved ones, and those that changed: they are to be read."""
    left: tuple[int, ...] = ()
    """VMIDs that no longer exist, or are now the record's."""

    def __bool__(self) -> bool:
        return bool(self.came or self.left)


def known(cluster: str, wanted: sa.ColumnElement[bool]) -> sa.Select[tuple[int, str]]:
    """Return the query for (VMID, node) of those that are stored; ``wanted``: see ``vmid``."""
    return sa.select(_V.vmid, _V.node).where(_V.cluster == cluster, wanted)


def compared(
    seen: Mapping[int, VmFacts],
    stored: Mapping[int, str],
    reserved: Collection[int],
    gone: Collection[int],
    *,
    covers: bool,
) -> Compared:
    """Compare a report with what is stored, VMID → node; ``covers``: it has all there is. Pure."""
    there = {vmid: vm for vmid, vm in seen.items() if vm.kind in KINDS and vmid not in reserved}
    came = [
        vm
        for vmid, vm in sorted(there.items())
        # What is reported though it is no report of all has changed.
        if vm.node and (not covers or stored.get(vmid) != vm.node)
    ]
    left = [
        vmid
        for vmid in sorted(stored)
        if vmid in reserved or (vmid not in seen and (covers or vmid in gone))
    ]
    return Compared(tuple(came), tuple(left))


def take(connection: sa.Connection, cluster: str, found: Compared) -> None:
    """Store what came, to be read, and forget what left."""
    forget(connection, cluster, found.left)
    for vm in found.came:
        values = {"node": vm.node, "kind": vm.kind, "read_at": None}
        mine = (_V.cluster == cluster) & (_V.vmid == vm.vmid)
        if connection.execute(other_vms.update().where(mine).values(**values)).rowcount == 0:
            connection.execute(other_vms.insert().values(cluster=cluster, vmid=vm.vmid, **values))


def forget(connection: sa.Connection, cluster: str, vmids: Collection[int]) -> None:
    """Forget VMs that no longer exist, or are now the record's.

    The VMs first: ``keep`` holds their rows while it writes interfaces, which are seen then.
    """
    for table in (other_vms, other_nics) if vmids else ():
        mine = (table.c.cluster == cluster) & table.c.vmid.in_(sorted(vmids))
        connection.execute(table.delete().where(mine))


def doubt(connection: sa.Connection) -> None:
    """Have the VMs of all servers read, as those are that the record doesn't know.

    A restored record doesn't have the interfaces that they got since. Builds wait until all were
    read. They are forgotten once nothing is held: see ``vmids.unexplained``.
    """
    mine = servers.c
    there = sa.exists().where(_V.cluster == mine.cluster, _V.vmid == mine.vmid)
    having = mine.vmid.is_not(None) & mine.cluster.is_not(None) & mine.node.is_not(None)
    alive = sa.select(mine.cluster, mine.vmid, mine.node, sa.literal("VM")).where(
        mine.deleted_at.is_(None), having, ~there
    )
    names = ["cluster", "vmid", "node", "kind"]
    connection.execute(other_vms.insert().from_select(names, alive))


def due(connection: sa.Connection, of: Collection[str], most: int) -> dict[str, list[OtherVm]]:
    """Return those of some clusters that are to be read, by cluster: new ones, and those read
    long ago."""
    long_ago = clock.after(-AGAIN_SECONDS)
    query = (
        sa.select(_V.cluster, _V.vmid, _V.node, _V.kind)
        .where(_V.cluster.in_(sorted(of)), _V.read_at.is_(None) | (_V.read_at < long_ago))
        .order_by(_V.read_at.is_not(None), _V.read_at, _V.cluster, _V.vmid)
        .limit(most)
    )
    found: defaultdict[str, list[OtherVm]] = defaultdict(list)
    for cluster, *rest in connection.execute(query):
        found[cluster].append(OtherVm(*rest))
    return dict(found)


def keep(connection: sa.Connection, cluster: str, read: Sequence[OtherVm]) -> None:
    """Store what was read of those that are still there.

    Of those that could not be read it remains as it was; they are read again soon.
    """
    wanted = sorted(one.vmid for one in read)
    mine = (_V.cluster == cluster) & _V.vmid.in_(wanted)
    locked = sa.select(_V.vmid).where(mine).order_by(_V.vmid).with_for_update()
    there = set(connection.scalars(locked))
    unread = {one.vmid for one in read if one.unread} & there
    shown = sorted(there - unread)
    connection.execute(other_nics.delete().where(_N.cluster == cluster, _N.vmid.in_(shown)))
    rows = [row for one in read if one.vmid in shown for row in _rows(cluster, one)]
    if rows:
        connection.execute(other_nics.insert(), rows)
    soon = clock.after(SOON_SECONDS - AGAIN_SECONDS)
    for vmids, moment in ((shown, clock.utcnow()), (sorted(unread), soon)):
        those = other_vms.update().where(_V.cluster == cluster, _V.vmid.in_(vmids))
        if vmids:
            connection.execute(those.values(read_at=moment))


def _rows(cluster: str, one: OtherVm) -> list[dict[str, object]]:
    numbers = itertools.count()
    return [
        {
            "cluster": cluster,
            "vmid": one.vmid,
            "number": next(numbers),
            "mac": nic.mac.lower()[:17],
            "bridge": nic.bridge[:32],
            "segment": nic.vlan or 0,
            "ip": ip,
        }
        for nic in one.nics
        for ip in nic.ips or (None,)
    ]


def on_network(network_id: str, ip: str) -> sa.Select[tuple[str | None]]:
    """Return the query for an address that they have on a network, or on none of its subnets."""
    wire = (_N.bridge == networks.c.bridge) & (_N.segment == networks.c.segment)
    there = other_nics.join(networks, wire)
    return sa.select(_N.ip).select_from(there).where(networks.c.id == network_id, _N.ip == ip)


def macs(wanted: sa.BindParameter[Sequence[str]]) -> sa.Select[tuple[str]]:
    """Return the query for those of some MAC addresses that they have."""
    return sa.select(_N.mac).where(_N.mac.in_(wanted))


def tags(connection: sa.Connection, bridge: str) -> set[int]:
    """Return the VLAN tags that they have on a bridge."""
    query = sa.select(_N.segment).where(_N.bridge == bridge, _N.segment > 0)
    return set(connection.scalars(query.distinct()))


# --- whether all of them are known


def looked(connection: sa.Connection, cluster: str, at: datetime.datetime) -> None:
    """Store that all VMs of a cluster were compared with the record, as they were at a moment.

    What was read of its VMs while the comparison was awaited is read again: builds that the record
    has lost may not have ended then.
    """
    mine = clusters.c.cluster == cluster
    began = connection.scalar(sa.select(cloud_identity.c.compare_since))
    awaited = sa.select(clusters.c.cluster).where(mine, _is_stale(began or _NEVER))
    if began is not None and at >= began and connection.execute(awaited).first() is not None:
        lately = _V.read_at >= began - datetime.timedelta(seconds=SOON_SECONDS)
        again = other_vms.update().where(_V.cluster == cluster, lately).values(read_at=None)
        connection.execute(again)
    newer = clusters.c.looked_at.is_(None) | (clusters.c.looked_at < at)
    connection.execute(clusters.update().where(mine, newer).values(looked_at=at))


def stale(connection: sa.Connection, since: datetime.datetime) -> list[str]:
    """Return the clusters that have to be compared, and were not since then."""
    query = sa.select(clusters.c.cluster).where(_is_stale(since))
    return sorted(connection.scalars(query))


def open_clusters(connection: sa.Connection, since: datetime.datetime) -> set[str]:
    """Return the clusters that may have VMs whose addresses are not known yet."""
    unread = sa.select(_V.cluster).where(_V.read_at.is_(None)).distinct()
    return {*stale(connection, since), *connection.scalars(unread)}


def unsettled(
    cluster: sa.BindParameter[str], since: sa.BindParameter[datetime.datetime]
) -> sa.ColumnElement[bool]:
    """Return the condition that a cluster, or one of ``EVERY``, may have VMs whose addresses are
    not known yet.

    A cluster that was never compared has no record of it to be restored, if the record had no
    operation when the comparison began.
    """
    every = cluster == EVERY
    unread = sa.exists().where((_V.cluster == cluster) | every, _V.read_at.is_(None))
    mine = (clusters.c.cluster == cluster) | every
    return unread | sa.exists().where(mine, _is_stale(since))


def _is_stale(
    since: datetime.datetime | sa.BindParameter[datetime.datetime],
) -> sa.ColumnElement[bool]:
    """Return the condition that a cluster was not compared since then, or since a comparison
    began that its record asks for, as after a fail-over while conductors ran."""
    began = sa.select(cloud_identity.c.compare_since).scalar_subquery()
    has_operations = sa.exists().where(cloud_identity.c.compare_operation > 0)
    at = clusters.c.looked_at
    return (at < since) | (at < began) | (at.is_(None) & has_operations)
