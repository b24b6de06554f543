"""Server groups, and the places that servers of strict groups take on hosts.

A place is taken with the host that is committed for a server, and released with it. Constraints
exclude rows that the policy forbids: one slot of a host has one server (anti-affinity), one group
has one anchor (affinity). A claim for a group locks its row, so that a conflict gives a reason and
no error; the row of a group is locked before rows of servers.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import NotFound, QuotaExceeded
from common.messages.commands import StrictGroup
from common.resources.server_groups import MAX_PER_HOST, STRICT, GroupFacts, Policy, taken
from common.rpc import deadlines
from conductor.rpc.servers.server_groups import NewServerGroup
from conductor.store.records import Server
from db.schema import server_group_anchors, server_group_places, server_groups, servers

_GROUPS = server_groups.c
_PLACES = server_group_places.c
_ANCHORS = server_group_anchors.c


@dataclass(frozen=True)
class Group:
    """A group's requirements on the hosts of its servers."""

    uuid: str
    policy: str
    rules: Mapping[str, Any]

    @property
    def max_per_host(self) -> int:
        """For anti-affinity: how many of its servers one host may have."""
        return int(self.rules.get(MAX_PER_HOST, 1))


# --- groups


def create(connection: sa.Connection, new: NewServerGroup) -> str:
    """Create a group; return its UUID."""
    uuid = deadlines.new_uuid()
    connection.execute(
        server_groups.insert().values(
            uuid=uuid,
            project_id=new.project_id,
            user_id=new.user_id,
            name=new.name,
            policy=new.policy,
            rules=dict(new.rules),
            created_at=clock.utcnow(),
        )
    )
    return uuid


def count(connection: sa.Connection, project_id: str) -> int:
    """Return how many groups a project has."""
    query = sa.select(sa.func.count()).where(_GROUPS.project_id == project_id)
    return int(connection.execute(query).scalar_one())


def delete(connection: sa.Connection, uuid: str, project_id: str | None) -> None:
    """Delete a group; its servers stay. Raises NotFound, also for another project's."""
    locked(connection, uuid, project_id)
    connection.execute(
        servers.update().where(servers.c.server_group_uuid == uuid).values(server_group_uuid=None)
    )
    connection.execute(server_group_places.delete().where(_PLACES.group_uuid == uuid))
    connection.execute(server_group_anchors.delete().where(_ANCHORS.group_uuid == uuid))
    connection.execute(server_groups.delete().where(_GROUPS.uuid == uuid))


def join(
    connection: sa.Connection,
    uuid: str,
    project_id: str | None,
    user_id: str | None,
    further: int,
    limit: int,
) -> None:
    """Check that a user may add so many servers to a group, which is locked until commit.

    ``limit`` is for a user's servers in one group, -1: none. Raises NotFound, also for another
    project's group; QuotaExceeded.
    """
    locked(connection, uuid, project_id)
    if limit < 0:
        return
    mine = servers.c.user_id == user_id
    query = sa.select(sa.func.count()).where(_members(uuid), mine)
    used = int(connection.execute(query).scalar_one())
    if used + further > limit:
        raise QuotaExceeded(
            "Quota exceeded, too many servers in group",
            resource="server_group_members",
            limit=limit,
            used=used,
            requested=further,
        )


def _members(uuid: str) -> sa.ColumnElement[bool]:
    return (servers.c.server_group_uuid == uuid) & servers.c.deleted_at.is_(None)


def locked(connection: sa.Connection, uuid: str, project_id: str | None) -> Group:
    """Return the group, locked for changes and claims. Raises NotFound."""
    group = _locked(connection, uuid, project_id)
    if group is None:
        raise NotFound(f"Instance group {uuid} could not be found.")
    return group


def _locked(connection: sa.Connection, uuid: str, project_id: str | None = None) -> Group | None:
    query = sa.select(_GROUPS.uuid, _GROUPS.policy, _GROUPS.rules).where(_GROUPS.uuid == uuid)
    if project_id is not None:
        query = query.where(_GROUPS.project_id == project_id)
    row = connection.execute(query.with_for_update()).first()
    return None if row is None else Group(*row)


def strict(
    connection: sa.Connection, uuids: Collection[str] | None = None
) -> dict[str, StrictGroup]:
    """Return those of these groups (None: of all) whose policy is strict, by UUID."""
    query = sa.select(_GROUPS.uuid, _GROUPS.policy, _GROUPS.rules).where(
        _GROUPS.policy.in_(list(STRICT))
    )
    if uuids is not None:
        query = query.where(_GROUPS.uuid.in_(list(uuids)))
    found = (Group(*row) for row in connection.execute(query))
    return {
        one.uuid: StrictGroup(one.uuid, one.policy == Policy.ANTI_AFFINITY, one.max_per_host)
        for one in found
    }


def vms(connection: sa.Connection, uuid: str, cluster: str) -> list[sa.Row[Any]]:
    """Return (uuid, VMID, vm_state, task_state) of the group's servers with a VMID there."""
    columns = servers.c
    query = sa.select(columns.uuid, columns.vmid, columns.vm_state, columns.task_state).where(
        _members(uuid), columns.cluster == cluster, columns.vmid.is_not(None)
    )
    return list(connection.execute(query.order_by(columns.vmid)))


def hosts(connection: sa.Connection, uuid: str) -> list[tuple[str, str]]:
    """Return (cluster, host), each once, of the hosts that have servers of the group."""
    columns = servers.c
    query = sa.select(columns.cluster, columns.host).where(
        _members(uuid), columns.cluster.is_not(None), columns.host.is_not(None)
    )
    return [(row.cluster, row.host) for row in connection.execute(query.distinct())]


# --- places


def facts(
    connection: sa.Connection, uuid: str | None, server_uuid: str | None, *holders: str
) -> GroupFacts | None:
    """Return the group facts for a request spec: two queries; None without a group.

    Neither the server counts, nor what these migrations of it hold.
    """
    if uuid is None:
        return None
    row = connection.execute(
        sa.select(_GROUPS.uuid, _GROUPS.policy, _GROUPS.rules).where(_GROUPS.uuid == uuid)
    ).first()
    if row is None:
        return None
    group = Group(*row)
    strict = group.policy in STRICT
    but = (server_uuid or "", *holders)
    members = _places(connection, uuid, but) if strict else _hosts(connection, uuid, server_uuid)
    return GroupFacts(group.uuid, group.policy, group.max_per_host, members)


def _places(connection: sa.Connection, uuid: str, but: Collection[str] = ()) -> dict[str, int]:
    """Return {host: places taken there}, without those of some holders."""
    query = (
        sa.select(_PLACES.host, sa.func.count())
        .where(_PLACES.group_uuid == uuid, _PLACES.server_uuid.not_in(list(but)))
        .group_by(_PLACES.host)
    )
    return dict(connection.execute(query).all())


def _hosts(connection: sa.Connection, uuid: str, but: str | None) -> dict[str, int]:
    """Return {host: servers of the group there}, without one server."""
    query = (
        sa.select(servers.c.host, sa.func.count())
        .where(_members(uuid), servers.c.host.is_not(None), servers.c.uuid != (but or ""))
        .group_by(servers.c.host)
    )
    return dict(connection.execute(query).all())


def take(connection: sa.Connection, server: Server, host: str) -> str | None:
    """Take a place on a host for a server; return why there is none, or None.

    A server without a strict group needs none.
    """
    if server.server_group_uuid is None:
        return None
    group = _locked(connection, server.server_group_uuid)
    if group is None or group.policy not in STRICT:
        return None
    reason = taken(group.policy, group.max_per_host, host, _places(connection, group.uuid))
    if reason is not None:
        return reason
    if group.policy == Policy.AFFINITY:
        _anchor(connection, group.uuid, host)
    _insert(connection, group.uuid, host, server.uuid)
    return None


def _insert(connection: sa.Connection, group_uuid: str, host: str, holder: str) -> None:
    slots = connection.execute(
        sa.select(_PLACES.slot).where(_PLACES.group_uuid == group_uuid, _PLACES.host == host)
    ).scalars()
    used = set(slots)
    connection.execute(
        server_group_places.insert().values(
            server_uuid=holder,
            group_uuid=group_uuid,
            host=host,
            slot=next(slot for slot in itertools.count() if slot not in used),
        )
    )


def take_beside(connection: sa.Connection, server: Server, host: str, holder: str) -> str | None:
    """Take a place on the host that a server moves to, in addition to its own; return why no place
    is free, or None.

    ``holder``, the UUID of the migration, holds the place until ``move_place`` or ``drop``.
    """
    if server.server_group_uuid is None:
        return None
    group = _locked(connection, server.server_group_uuid)
    if group is None or group.policy not in STRICT:
        return None
    others = _places(connection, group.uuid, but=(server.uuid, holder))
    reason = taken(group.policy, group.max_per_host, host, others)
    if reason is not None:
        return reason
    connection.execute(server_group_places.delete().where(_PLACES.server_uuid == holder))
    _insert(connection, group.uuid, host, holder)
    return None


def move_place(connection: sa.Connection, server: Server, holder: str) -> None:
    """Give the server the place that its migration holds, instead of its own. May be repeated."""
    if server.server_group_uuid is None:
        return
    group = _locked(connection, server.server_group_uuid)
    query = sa.select(_PLACES.host).where(_PLACES.server_uuid == holder)
    host = connection.execute(query).scalar()
    if group is None or host is None:
        return
    connection.execute(server_group_places.delete().where(_PLACES.server_uuid == server.uuid))
    connection.execute(
        server_group_places.update()
        .where(_PLACES.server_uuid == holder)
        .values(server_uuid=server.uuid)
    )
    if group.policy == Policy.AFFINITY:
        connection.execute(
            server_group_anchors.update()
            .where(_ANCHORS.group_uuid == group.uuid)
            .values(host=host)
        )


def drop(connection: sa.Connection, server: Server, holder: str) -> None:
    """Release the place that a migration of the server holds. May be repeated; no query without
    a group."""
    if server.server_group_uuid is None:
        return
    _locked(connection, server.server_group_uuid)
    connection.execute(server_group_places.delete().where(_PLACES.server_uuid == holder))


def _anchor(connection: sa.Connection, uuid: str, host: str) -> None:
    mine = _ANCHORS.group_uuid == uuid
    there = connection.execute(sa.select(_ANCHORS.host).where(mine)).scalar()
    if there is None:
        connection.execute(server_group_anchors.insert().values(group_uuid=uuid, host=host))


def give_back(connection: sa.Connection, server: Server, *holders: str) -> None:
    """Release the server's place, and those that migrations of it hold. May be repeated; no query
    without a group."""
    if server.server_group_uuid is None:
        return
    group = _locked(connection, server.server_group_uuid)
    mine = _PLACES.server_uuid.in_((server.uuid, *holders))
    connection.execute(server_group_places.delete().where(mine))
    if group is not None and group.policy == Policy.AFFINITY:
        others = sa.exists().where(_PLACES.group_uuid == group.uuid)
        connection.execute(
            server_group_anchors.delete().where(_ANCHORS.group_uuid == group.uuid, ~others)
        )


def follow(connection: sa.Connection, server: Server, host: str) -> str | None:
    """Move the place of a server that was moved to another host, whatever its group says.

    Return how that breaks the group's policy, or None; then the server has no place, and doesn't
    count, until it is on a host that its group allows.
    """
    give_back(connection, server)
    return take(connection, server, host)
