"""VMIDs: reserved from our own band before use, under a unique key.

The search cycles through the band, so an id is reused as late as possible. Doubtful ids are
quarantined with the reason; ids of other VMs are ``taken`` for as long as the VMs are seen.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import Conflict, Unavailable
from common.messages.facts import VmFacts
from common.resources.states import OPEN_STATES
from conductor.store.networks import unknown_vms
from conductor.store.networks.unknown_vms import Compared
from db.schema import (
    cloud_identity,
    clusters,
    operations,
    other_vms,
    vmid_bands,
    vmid_journal,
    vmids,
)

RESERVED = "reserved"
QUARANTINED = "quarantined"
TAKEN = "taken"
#: no VMID: that the record is held
_HELD = -1


# Built once: every build and every delete executes them.
_BAND = (
    sa.select(vmid_bands).where(vmid_bands.c.cluster == sa.bindparam("cluster")).with_for_update()
)
_MOVE_ON = vmid_bands.update().where(vmid_bands.c.cluster == sa.bindparam("of"))
_ONE = (vmids.c.cluster == sa.bindparam("cluster")) & (vmids.c.vmid == sa.bindparam("vmid"))
_HAS = sa.select(vmids.c.vmid).where(_ONE)
_FREE = vmids.delete().where(_ONE)
_BETWEEN = sa.select(vmids.c.vmid).where(
    vmids.c.cluster == sa.bindparam("cluster"),
    vmids.c.vmid.between(sa.bindparam("first"), sa.bindparam("last")),
)

#: in the place of the state of a VMID that a build reserved while the cluster was to be compared
#: with the record, and until that build ends: a VM that is lost may have had it before
_DOUBTFUL = "doubtful"
_CLUSTER: sa.BindParameter[str] = sa.bindparam("cluster")
_BEGAN = sa.select(cloud_identity.c.compare_since).scalar_subquery()
_LAST = sa.select(cloud_identity.c.compare_operation).scalar_subquery()
_COMPARED = sa.exists().where(clusters.c.cluster == _CLUSTER, clusters.c.looked_at >= _BEGAN)
_IS_STORED = sa.exists().where(other_vms.c.cluster == _CLUSTER, other_vms.c.vmid == vmids.c.vmid)
_IS_BUILT = sa.exists().where(
    operations.c.id == vmids.c.operation_id, operations.c.state.in_(OPEN_STATES)
)
_SINCE_THEN = (vmids.c.since >= _BEGAN) | (vmids.c.operation_id > _LAST)
_STATE: sa.ColumnElement[str] = sa.case(
    (_BEGAN.is_not(None) & _SINCE_THEN & (~_COMPARED | _IS_STORED) & _IS_BUILT, _DOUBTFUL),
    else_=vmids.c.state,
)


class BandExhausted(Unavailable):
    """No VMID of a cluster's band is free."""


def bands(connection: sa.Connection) -> dict[str, tuple[int, int]]:
    """Return first and last VMID of each cluster's band."""
    rows = connection.execute(sa.select(vmid_bands)).all()
    return {row.cluster: (row.low, row.high) for row in rows}


def set_band(connection: sa.Connection, cluster: str, low: int, high: int) -> None:
    """Take over a cluster's band from its configuration; reserved ids stay reserved."""
    mine = vmid_bands.c.cluster == cluster
    known = connection.execute(sa.select(vmid_bands).where(mine)).first()
    if known is None:
        connection.execute(
            vmid_bands.insert().values(cluster=cluster, low=low, high=high, next=low)
        )
    elif (known.low, known.high) != (low, high):
        following = known.next if low <= known.next <= high else low
        connection.execute(
            vmid_bands.update().where(mine).values(low=low, high=high, next=following)
        )


def reserve(
    connection: sa.Connection, cluster: str, server_uuid: str | None, operation_id: int | None
) -> int:
    """Reserve the next free VMID of the cluster's band. Raises BandExhausted."""
    band = _lock(connection, cluster)
    vmid = _free_from(connection, cluster, band.next, band.high)
    if vmid is None:
        vmid = _free_from(connection, cluster, band.low, band.high)
    if vmid is None:
        raise BandExhausted(_exhausted(connection, cluster, band.low, band.high))
    _take(connection, band, {vmid: (server_uuid, operation_id)})
    return vmid


def reserve_all(
    connection: sa.Connection, cluster: str, owners: Sequence[tuple[str, int]]
) -> list[int]:
    """Reserve the next free VMIDs of the cluster's band for (server, operation) each.

    Mostly as many statements as for one. Raises BandExhausted if there are not enough.
    """
    count = len(owners)
    if count == 1:
        return [reserve(connection, cluster, *owners[0])]
    band = _lock(connection, cluster)
    last = min(band.high, band.next + 2 * count)
    near = {"cluster": cluster, "first": band.next, "last": last}
    taken = set(connection.scalars(_BETWEEN, near))
    free = [vmid for vmid in range(band.next, last + 1) if vmid not in taken][:count]
    if len(free) < count:
        # Near the end of the band, or in a run of taken ones.
        return [reserve(connection, cluster, *owner) for owner in owners]
    _take(connection, band, dict(zip(free, owners, strict=True)))
    return free


def _lock(connection: sa.Connection, cluster: str) -> Any:
    """Return the row of a cluster's band; it is locked until the transaction ends."""
    band = connection.execute(_BAND, {"cluster": cluster}).first()
    if band is None:
        raise Unavailable(f"Cluster {cluster} has no band of VMIDs yet.")
    return band


def _take(
    connection: sa.Connection, band: Any, owners: Mapping[int, tuple[str | None, int | None]]
) -> None:
    """Store VMIDs of a band, and where the next search continues: after the last of them."""
    _reserved(connection, band.cluster, owners)
    last = list(owners)[-1]
    following = last + 1 if last < band.high else band.low
    connection.execute(_MOVE_ON, {"of": band.cluster, "next": following})


def _exhausted(connection: sa.Connection, cluster: str, low: int, high: int) -> str:
    """Return what uses the VMIDs of a band, in a sentence."""
    query = sa.select(vmids.c.state, sa.func.count()).where(
        vmids.c.cluster == cluster, vmids.c.vmid.between(low, high)
    )
    counts = {
        str(state): count for state, count in connection.execute(query.group_by(vmids.c.state))
    }
    words = (
        (RESERVED, "reserved for servers and templates"),
        (QUARANTINED, "quarantined"),
        (TAKEN, "taken by VMs that are not this cloud's"),
    )
    used = ", ".join(f"{counts[state]} {text}" for state, text in words if counts.get(state))
    return (
        f"The band of VMIDs of cluster {cluster}, {low} to {high}, is used up: {used or 'empty'}."
    )


def _free_from(connection: sa.Connection, cluster: str, first: int, last: int) -> int | None:
    """Return the lowest free id from ``first`` on: mostly itself, else after the taken run."""
    if connection.execute(_HAS, {"cluster": cluster, "vmid": first}).first() is None:
        return first if first <= last else None
    taken = vmids.alias("taken")
    following = vmids.alias("following")
    gap = connection.execute(
        sa.select(sa.func.min(taken.c.vmid) + 1).where(
            taken.c.cluster == cluster,
            taken.c.vmid >= first,
            ~sa.exists().where(
                following.c.cluster == cluster, following.c.vmid == taken.c.vmid + 1
            ),
        )
    ).scalar()
    return gap if gap is not None and gap <= last else None


def _reserved(
    connection: sa.Connection,
    cluster: str,
    owners: Mapping[int, tuple[str | None, int | None]],
) -> None:
    """Store the (server, operation) of VMIDs: two statements."""
    now = clock.utcnow()
    rows = [
        {"cluster": cluster, "vmid": vmid, "server_uuid": server, "operation_id": operation}
        for vmid, (server, operation) in owners.items()
    ]
    connection.execute(vmids.insert(), [{"state": RESERVED, "since": now, **row} for row in rows])
    connection.execute(vmid_journal.insert(), [{"reserved_at": now, **row} for row in rows])


def every(connection: sa.Connection) -> dict[str, frozenset[int]]:
    """Return the VMIDs that are reserved, by cluster."""
    query = sa.select(vmids.c.cluster, vmids.c.vmid).where(vmids.c.state == RESERVED)
    found: defaultdict[str, set[int]] = defaultdict(set)
    for cluster, vmid in connection.execute(query):
        found[cluster].add(vmid)
    return {cluster: frozenset(those) for cluster, those in found.items()}


def claim(
    connection: sa.Connection,
    cluster: str,
    vmid: int,
    server_uuid: str | None,
    operation_id: int | None,
) -> None:
    """Reserve the VMID of an existing VM, in the band or not. Raises Conflict.

    ``server_uuid`` None: it is a volume's holder.
    """
    mine = (vmids.c.cluster == cluster) & (vmids.c.vmid == vmid)
    known = connection.execute(sa.select(vmids).where(mine).with_for_update()).first()
    if known is not None and known.state == RESERVED:
        whose = f"server {known.server_uuid}" if known.server_uuid else "an image's template"
        raise Conflict(f"VMID {vmid} of cluster {cluster} is reserved for {whose}.")
    # A quarantine means doubt: now its owner is known.
    connection.execute(vmids.delete().where(mine))
    _reserved(connection, cluster, {vmid: (server_uuid, operation_id)})


def release_foreign(
    connection: sa.Connection, cluster: str, vmid: int, server_uuid: str, reason: str
) -> None:
    """Release a server's VMID, of a VM that remains but isn't ours; in our band it is quarantined.

    Nothing happens to a VMID that is another server's by now.
    """
    mine = (vmids.c.cluster == cluster) & (vmids.c.vmid == vmid)
    others = mine & (vmids.c.server_uuid != server_uuid)
    if connection.execute(sa.select(vmids.c.vmid).where(others)).first() is not None:
        return
    band = connection.execute(
        sa.select(vmid_bands.c.low, vmid_bands.c.high).where(vmid_bands.c.cluster == cluster)
    ).first()
    if band is not None and band.low <= vmid <= band.high:
        quarantine(connection, cluster, vmid, reason)
    else:
        free(connection, cluster, vmid)


def free(connection: sa.Connection, cluster: str, vmid: int) -> None:
    """Release a VMID: nothing is left in the cluster."""
    free_all(connection, [(cluster, vmid)])


def free_all(connection: sa.Connection, places: Sequence[tuple[str, int]]) -> None:
    """Release (cluster, VMID) pairs as `free` does, in one statement."""
    rows = [{"cluster": cluster, "vmid": vmid} for cluster, vmid in sorted(places)]
    if rows:
        connection.execute(_FREE, rows)


def hold(
    connection: sa.Connection, cluster: str, vmid: int, server_uuid: str, operation_id: int | None
) -> bool:
    """Reserve a given VMID for a server; return False if it is reserved for another server."""
    mine = (vmids.c.cluster == cluster) & (vmids.c.vmid == vmid)
    row = connection.execute(sa.select(vmids).where(mine).with_for_update()).first()
    values = {
        "state": RESERVED,
        "server_uuid": server_uuid,
        "operation_id": operation_id,
        "since": clock.utcnow(),
    }
    if row is None:
        connection.execute(vmids.insert().values(cluster=cluster, vmid=vmid, **values))
        return True
    if row.state == RESERVED and row.server_uuid != server_uuid:
        return False
    connection.execute(vmids.update().where(mine).values(**values))
    return True


def was_of(
    connection: sa.Connection, cluster: str, vmid: int, server_uuid: str, *, refused: bool = False
) -> bool:
    """Return whether the journal gave the VMID to the server; ``refused``: even if refused."""
    columns = vmid_journal.c
    query = sa.select(columns.id).where(
        columns.cluster == cluster,
        columns.vmid == vmid,
        columns.server_uuid == server_uuid,
        sa.true() if refused else ~columns.refused,
    )
    return connection.execute(query).first() is not None


def held_since(
    connection: sa.Connection, cluster: str, vmid: int, server_uuid: str
) -> datetime.datetime | None:
    """Return when the journal gave the VMID to the server last; None: it didn't."""
    columns = vmid_journal.c
    query = sa.select(sa.func.max(columns.reserved_at)).where(
        columns.cluster == cluster,
        columns.vmid == vmid,
        columns.server_uuid == server_uuid,
        ~columns.refused,
    )
    moment: datetime.datetime | None = connection.execute(query).scalar()
    return moment


def refuse(connection: sa.Connection, cluster: str, vmid: int, operation_id: int) -> None:
    """Store that others had the VMID before the operation made anything there."""
    columns = vmid_journal.c
    connection.execute(
        vmid_journal.update()
        .where(
            columns.cluster == cluster,
            columns.vmid == vmid,
            columns.operation_id == operation_id,
        )
        .values(refused=True)
    )


def were_read(connection: sa.Connection, cluster: str, read: Collection[int]) -> None:
    """Store that the descriptions of these VMs were read now."""
    mine = (vmids.c.cluster == cluster) & vmids.c.vmid.in_(sorted(read))
    connection.execute(vmids.update().where(mine).values(read_at=clock.utcnow()))


def holds(connection: sa.Connection, operation_id: int) -> bool:
    """Return whether an operation holds a VMID."""
    mine = vmids.c.operation_id == operation_id
    return connection.execute(sa.select(vmids.c.vmid).where(mine)).first() is not None


def release_held(connection: sa.Connection, operation_id: int) -> None:
    """Release the VMID that an operation held: nothing is left in the cluster."""
    connection.execute(vmids.delete().where(vmids.c.operation_id == operation_id))


def quarantine(connection: sa.Connection, cluster: str, vmid: int, reason: str) -> None:
    """Quarantine a VMID: something is, or may be, there."""
    connection.execute(
        vmids.update()
        .where(vmids.c.cluster == cluster, vmids.c.vmid == vmid)
        .values(state=QUARANTINED, reason=reason, server_uuid=None, since=clock.utcnow())
    )


def end_quarantines(connection: sa.Connection, seconds: float) -> None:
    """Release ids quarantined for longer (the agent looks before it creates)."""
    before = clock.utcnow() - datetime.timedelta(seconds=seconds)
    connection.execute(vmids.delete().where(vmids.c.state == QUARANTINED, vmids.c.since < before))


# --- what is seen in the clusters


def unexplained(
    connection: sa.Connection,
    cluster: str,
    seen: Mapping[int, VmFacts],
    gone: Collection[int],
    covered: tuple[int, int] | None,
) -> tuple[list[int], list[int], Compared]:
    """Return (VMIDs of the band seen but not reserved, taken ones that are free again, how the
    VMs that the record doesn't know have changed).

    ``covered``: everything in this range was seen; None: only a part.
    """

    def wanted(column: sa.Column[int]) -> sa.ColumnElement[bool]:
        return column.in_([*seen, *gone]) if covered is None else column.between(*covered)

    query = sa.select(vmids.c.vmid, _STATE, sa.literal(True)).where(
        vmids.c.cluster == cluster, wanted(vmids.c.vmid)
    )
    stored = unknown_vms.known(cluster, wanted(other_vms.c.vmid)).add_columns(sa.literal(False))
    known: dict[int, str] = {}
    unknown: dict[int, str] = {}
    # While a restored record is held, the VMs of servers are doubted: see ``unknown_vms.doubt``.
    held = sa.select(sa.literal(_HELD), sa.literal(""), sa.literal(False)).where(
        sa.exists().where(cloud_identity.c.held_at.is_not(None))
    )
    for vmid, text, recorded in connection.execute(
        query.union_all(stored, held), {"cluster": cluster}
    ):
        (known if recorded else unknown)[vmid] = text
    doubted = unknown.keys() if unknown.pop(_HELD, None) is not None else frozenset()
    reserved = {vmid for vmid, state in known.items() if state == RESERVED and vmid not in doubted}
    changed = unknown_vms.compared(seen, unknown, reserved, gone, covers=covered is not None)
    there = frozenset(seen)
    free = [
        vmid
        for vmid, state in known.items()
        if state == TAKEN and vmid not in there and (covered is not None or vmid in gone)
    ]
    new = there - known.keys()
    if not new:
        return [], free, changed
    low, high = bands(connection).get(cluster, (0, -1))
    return sorted(vmid for vmid in new if low <= vmid <= high), free, changed


def take_notice(
    connection: sa.Connection, cluster: str, seen: Mapping[int, VmFacts], free: Collection[int]
) -> None:
    """Store which VMIDs other VMs have, while the VMs are seen, and which are free again."""
    if seen:
        # The lock for reserving VMIDs: ids reserved since they were seen are ours.
        band = sa.select(vmid_bands.c.cluster).where(vmid_bands.c.cluster == cluster)
        connection.execute(band.with_for_update())
        known = set(
            connection.scalars(
                sa.select(vmids.c.vmid).where(
                    vmids.c.cluster == cluster, vmids.c.vmid.in_(sorted(seen))
                )
            )
        )
        now = clock.utcnow()
        rows = [
            {
                "cluster": cluster,
                "vmid": vmid,
                "state": TAKEN,
                "reason": f"A {seen[vmid].kind} that this cloud did not make was seen on "
                f"{seen[vmid].node}.",
                "since": now,
            }
            for vmid in sorted(seen.keys() - known)
        ]
        if rows:
            connection.execute(vmids.insert(), rows)
    if free:
        connection.execute(
            vmids.delete().where(
                vmids.c.cluster == cluster, vmids.c.vmid.in_(sorted(free)), vmids.c.state == TAKEN
            )
        )
