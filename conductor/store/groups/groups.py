"""Rows of scaling groups and of their members.

Who changes a group locks first its open operations, then its row. What happens to a member only
makes the group's operation due (``wake``), so that no server's row is locked after its group's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import clock, codec
from common.errors import NotFound
from common.messages.health import GuestHealth
from common.resources.groups import CLUSTERS, ZONES, Keep, MemberState
from common.resources.states import OPEN_STATES, OperationState, ResourceType
from common.resources.volumes import VolumeStatus
from conductor.rpc.servers.servers import CreateServers
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from db.reads.groups import groups as reads
from db.reads.groups.groups import GROUPS, MEMBERS, Binding, Group, Member
from db.reads.hosts import away as hosts
from db.reads.hosts.away import Away
from db.resources import about
from db.schema import (
    operations,
    ports,
    scaling_bindings,
    scaling_groups,
    scaling_members,
    scaling_profiles,
    scaling_receivers,
    servers,
    volumes,
)

#: operations that are looked at for that of a call
_LAST = 50
_FAILED = (OperationState.FAILED, OperationState.UNWINDING)

__all__ = ["Away", "Binding", "Group", "Member"]  # of the read side, as the other rooms name them

#: volumes that a server gets, that are made again, or that make its creation fail
_NOT_WAITED_FOR = (VolumeStatus.AVAILABLE, VolumeStatus.DELETING, VolumeStatus.ERROR)

_G, _M, _T = scaling_groups.c, scaling_members.c, operations.c
_V, _P = volumes.c, ports.c
_IDS: sa.BindParameter[Sequence[str]] = sa.bindparam("ids", expanding=True)
#: those of some IDs that are not free, with their status
_IN_USE: Mapping[Keep, sa.Select[Any]] = {
    Keep.VOLUMES: sa.select(_V.id, _V.status).where(
        _V.id.in_(_IDS), _V.status.notin_(_NOT_WAITED_FOR)
    ),
    Keep.PORTS: sa.select(_P.id, sa.literal("in use").label("status")).where(
        _P.id.in_(_IDS), _P.server_uuid != ""
    ),
}


# --- operations about groups


def open_operations(connection: sa.Connection, group_id: str) -> list[Operation]:
    """Return a group's open operations, oldest first; locked until the transaction ends."""
    query = (
        sa.select(*ledger.FIELDS)
        .where(about(ResourceType.GROUP, group_id), _T.state.in_(OPEN_STATES))
        .order_by(_T.id)
        .with_for_update()
    )
    return [ledger.from_row(row._mapping) for row in connection.execute(query)]


def begun_by(connection: sa.Connection, group_id: str, call: str) -> int | None:
    """Return the operation about a group that a call has begun; None: it has begun none."""
    if not call:
        return None
    query = sa.select(_T.id, _T.context).where(about(ResourceType.GROUP, group_id))
    # A message comes twice at about the same time.
    for row in connection.execute(query.order_by(_T.id.desc()).limit(_LAST)):
        if row.context.get("call") == call:
            return int(row.id)
    return None


# --- groups


def locked(connection: sa.Connection, group_id: str, project_id: str | None) -> Group:
    """Return a group that nobody else changes until the transaction ends. Raises NotFound."""
    query = sa.select(_G.id).where(_G.id == group_id).with_for_update()
    connection.execute(query)
    found = GROUPS.get(connection, group_id, project_id)
    if found is None:
        raise NotFound(f"The cluster '{group_id}' could not be found.")
    return found


def insert(connection: sa.Connection, values: Mapping[str, Any]) -> None:
    """Insert a group that nothing has happened to."""
    connection.execute(
        scaling_groups.insert().values(
            next_index=1,
            rolling=False,
            paused=False,
            deleting=False,
            failures=0,
            refusals=0,
            created_at=clock.utcnow(),
            **values,
        )
    )


def change(connection: sa.Connection, group_id: str, **values: Any) -> None:
    """Change columns of a group."""
    connection.execute(scaling_groups.update().where(_G.id == group_id).values(**values))


def delete(connection: sa.Connection, group_id: str) -> None:
    """Delete a group with its webhooks; it has no members any more."""
    for table in (scaling_receivers, scaling_bindings):
        connection.execute(table.delete().where(table.c.group_id == group_id))
    connection.execute(scaling_groups.delete().where(_G.id == group_id))


def profile_of(connection: sa.Connection, profile_id: str) -> CreateServers | None:
    """Return the create of one server of a profile; None: it is deleted."""
    columns = scaling_profiles.c
    query = sa.select(columns.request).where(columns.id == profile_id)
    row = connection.execute(query).first()
    return None if row is None else codec.load(CreateServers, row.request)


@dataclass(frozen=True)
class Look:
    """A group as it is now."""

    group: Group
    members: Sequence[Member]
    policies: Sequence[Mapping[str, Any]]
    """The specs of those that are enabled."""
    context: Mapping[str, Any]
    """Of the request that made it: what is done with its members is done for its maker."""
    away: Mapping[str, Away]
    """The hosts of its members that can't be reached."""
    zones: frozenset[str]
    """The zones in which a host works; none: it is not spread over zones."""
    taken: Mapping[str, str]
    """Members without servers whose volumes or ports are not free → why."""
    clusters: frozenset[tuple[str, str]] = frozenset()
    """(zone, cluster) of the hosts that work; none: it is not spread over clusters."""


def look(connection: sa.Connection, group_id: str, patience: float = math.inf) -> Look | None:
    """Return a group with its members, locked; None: it is deleted.

    Six queries, and one more for volumes and for ports of places without a server.

    ``patience``: for how many seconds agents may be silent before their hosts count as away.
    """
    try:
        group = locked(connection, group_id, None)
    except NotFound:
        return None
    found = reads.members(connection, group_id)
    specs = [one.spec for one in bound(connection, group_id) if one.enabled]
    context = connection.execute(sa.select(_G.context).where(_G.id == group_id)).scalar_one()
    there = {one.host for one in found if one.host is not None and one.deleted_at is None}
    since = clock.after(-patience) if patience < math.inf else None
    zones = hosts.zones_that_work(connection, since) if group.config.get(ZONES) else frozenset()
    clusters: frozenset[tuple[str, str]] = frozenset()
    if group.config.get(CLUSTERS):
        clusters = hosts.clusters_that_work(connection, since)
    away = hosts.away(connection, there, since)
    taken = _taken(connection, found)
    return Look(group, found, specs, context, away, zones, taken, clusters)


def are_lost(connection: sa.Connection, names: Sequence[str], patience: float) -> bool:
    """Return whether all of these hosts are lost for good; ``patience`` as in ``look``."""
    since = clock.after(-patience) if patience < math.inf else None
    away = hosts.away(connection, names, since)
    return all(one in away and away[one].is_lost for one in names)


def _taken(connection: sa.Connection, members: Sequence[Member]) -> Mapping[str, str]:
    """Return members whose next server can't have what belongs to their places yet. No query
    where each place that has something has a server."""
    idle = [one for one in members if one.server_uuid is None or one.deleted_at is not None]
    found = {}
    for kind, query in _IN_USE.items():
        wanted = {each: one.id for one in idle for each in one.kept.get(kind, ())}
        for row in connection.execute(query, {"ids": sorted(wanted)}) if wanted else ():
            why = f"Its {kind.noun} {row.id} is {row.status}: it gets a server once that is free."
            found[wanted[row.id]] = why
    return found


def bound(connection: sa.Connection, group_id: str) -> list[Binding]:
    """Return the policies that a group has."""
    return reads.bindings(connection, group_id)


def count(connection: sa.Connection, project_id: str) -> int:
    """Return how many groups a project has."""
    query = sa.select(sa.func.count()).where(_G.project_id == project_id)
    return int(connection.execute(query).scalar_one())


# --- members


def member(connection: sa.Connection, member_id: str, project_id: str | None) -> Member:
    """Return a member. Raises NotFound."""
    found = MEMBERS.get(connection, member_id, project_id)
    if found is None:
        raise NotFound(f"The node '{member_id}' could not be found.")
    return found


def has_member(connection: sa.Connection, member_id: str) -> bool:
    """Return whether there is a member with this ID."""
    return MEMBERS.get(connection, member_id, None) is not None


def let_go(connection: sa.Connection, members: Sequence[Member]) -> None:
    """Delete members whose servers stay, as those of nobody's group."""
    uuids = [one.server_uuid for one in members]
    connection.execute(servers.update().where(servers.c.uuid.in_(uuids)).values(member_of=None))
    remove(connection, [one.id for one in members])


def add(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert members."""
    now = clock.utcnow()
    empty: dict[str, Any] = {
        **{"role": None, "meta": {}, "state": MemberState.KEPT, "reason": "", "recoveries": 0},
        **{"server_uuid": None, "created_at": now, "group_id": None, "member_index": None},
        **{"volumes": [], "ports": []},
    }
    if rows:
        connection.execute(scaling_members.insert(), [{**empty, **row} for row in rows])


def change_member(connection: sa.Connection, member_id: str, **values: Any) -> None:
    """Change columns of a member."""
    connection.execute(scaling_members.update().where(_M.id == member_id).values(**values))


def forget_repairs(connection: sa.Connection, group_id: str) -> None:
    """Count the repairs of a group's members from now on."""
    connection.execute(
        scaling_members.update().where(_M.group_id == group_id).values(recoveries=0)
    )


def note_health(connection: sa.Connection, found: Mapping[str, GuestHealth]) -> None:
    """Store what checks say of some members, by their IDs. One statement."""
    change = scaling_members.update().where(_M.id == sa.bindparam("member"))
    now = clock.utcnow()
    rows = [
        {"member": key, "health": one.result, "health_reason": one.text, "health_at": now}
        for key, one in sorted(found.items())
    ]
    connection.execute(change, rows)


def remove(connection: sa.Connection, member_ids: Sequence[str]) -> None:
    """Delete members whose servers are gone."""
    if member_ids:
        connection.execute(scaling_members.delete().where(_M.id.in_(member_ids)))


def take_out(connection: sa.Connection, members: Sequence[Member]) -> None:
    """Have members, with their servers, belong to no group; those without servers are deleted."""
    uuids = [one.server_uuid for one in members if one.server_uuid and not one.deleted_at]
    with_server = [one.id for one in members if one.server_uuid in uuids]
    remove(connection, [one.id for one in members if one.id not in with_server])
    connection.execute(servers.update().where(servers.c.uuid.in_(uuids)).values(member_of=None))
    connection.execute(
        scaling_members.update()
        .where(_M.id.in_(with_server))
        .values(
            group_id=None, member_index=None, state=MemberState.KEPT, updated_at=clock.utcnow()
        )
    )


def take_in(
    connection: sa.Connection, group_id: str, members: Sequence[Member], first_index: int
) -> None:
    """Have members, with their servers, belong to a group, with indexes from this one on."""
    for index, one in enumerate(members, first_index):
        change_member(
            connection,
            one.id,
            group_id=group_id,
            member_index=index,
            updated_at=clock.utcnow(),
        )
    uuids = [one.server_uuid for one in members]
    connection.execute(
        servers.update().where(servers.c.uuid.in_(uuids)).values(member_of=group_id)
    )


def close_all(
    connection: sa.Connection, opened: Sequence[Operation], state: OperationState, message: str
) -> None:
    """End all of a group's open operations: each asked for what is done now, or can't be."""
    ledger.close_all(connection, [one.id for one in opened], state, message)


def last_words(connection: sa.Connection, server_uuid: str) -> str:
    """Return why a server is in ERROR: the message of its last failed operation, which may still
    undo what it made."""
    query = (
        sa.select(_T.message)
        .where(about(ResourceType.SERVER, server_uuid), _T.state.in_(_FAILED))
        .order_by(_T.id.desc())
        .limit(1)
    )
    return str(connection.execute(query).scalar() or "its last operation failed")
