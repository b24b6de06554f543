"""The filter outbox: servers whose VM's firewall must be updated to their ports' security groups.

An entry is one server, however many changes there are; it is deleted once its latest change was
written. Only servers with a filtered port get an entry.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import clock, ids
from common.resources.states import VmState
from db.schema import (
    filter_changes,
    port_security_groups,
    ports,
    security_group_rules,
    servers,
)

_F, _P, _B, _R = filter_changes.c, ports.c, port_security_groups.c, security_group_rules.c

# Built once: creates and deletes execute them.
_IN_GROUPS = (
    sa.select(_P.server_uuid)
    .distinct()
    .join(port_security_groups, _B.port_id == _P.id)
    .where(_P.port_security.is_(sa.true()), _P.server_uuid != "")
)
_GROUPS = _B.security_group_id.in_(sa.bindparam("groups", expanding=True))
_OF_GROUPS = _IN_GROUPS.where(_GROUPS)


def _of_members(groups: Any) -> sa.Select[Any]:
    naming = sa.select(_R.security_group_id).where(_R.remote_group_id.in_(groups))
    return _IN_GROUPS.where(_B.security_group_id.in_(naming))


_OF_MEMBERS = _of_members(sa.bindparam("groups", expanding=True))


def is_watched(groups: Any) -> sa.ColumnElement[bool]:
    """Return whether ``members_changed`` finds any server for these groups, a parameter or a
    query, as a part of a statement that is executed anyway."""
    return _of_members(groups).correlate(None).exists()


def add(connection: sa.Connection, server_uuids: Collection[str]) -> None:
    """Have the firewalls of these servers' VMs made what is wanted. Three statements."""
    wanted = sorted(set(server_uuids) - {""})
    if not wanted:
        return
    new = {"token": ids.new_uuid(), "not_before": clock.utcnow(), "failures": 0}
    mine = _F.server_uuid.in_(wanted)
    # Lock in a fixed order, so that transactions adding the same servers don't deadlock.
    known = sa.select(_F.server_uuid).where(mine).order_by(_F.server_uuid).with_for_update()
    there = set(connection.execute(known).scalars())
    if there:
        connection.execute(filter_changes.update().where(mine).values(**new))
    rows = [{"server_uuid": one, **new} for one in wanted if one not in there]
    if rows:
        connection.execute(filter_changes.insert(), rows)


def groups_changed(connection: sa.Connection, group_ids: Collection[str]) -> None:
    """Add the servers with ports in these groups, whose rules have changed."""
    add(connection, connection.execute(_OF_GROUPS, {"groups": sorted(group_ids)}).scalars().all())


def members_changed(connection: sa.Connection, group_ids: Collection[str]) -> None:
    """Record that others are in these groups, or with other addresses: those in a group with a
    rule that names one as remote group must know."""
    if group_ids:
        found = connection.execute(_OF_MEMBERS, {"groups": sorted(group_ids)})
        add(connection, found.scalars().all())


def changing(connection: sa.Connection) -> frozenset[str]:
    """Return the servers whose firewalls are still to be written."""
    return frozenset(connection.execute(sa.select(_F.server_uuid)).scalars())


@dataclass(frozen=True)
class Pending:
    """A server whose VM's firewall is to be made what is wanted."""

    server_uuid: str
    token: str
    alive: bool
    """Whether there is such a server."""
    building: bool
    """Whether its VM is being made, perhaps with what was wanted before."""
    failures: int
    """How often it could not be written since its latest change."""


def pending(connection: sa.Connection, limit: int) -> list[Pending]:
    """Return a limited number of entries that are due."""
    rows = connection.execute(
        sa.select(
            *(_F.server_uuid, _F.token, _F.failures),
            *(servers.c.uuid, servers.c.deleted_at, servers.c.vm_state),
        )
        .outerjoin(servers, servers.c.uuid == _F.server_uuid)
        .where(_F.not_before <= clock.utcnow())
        .order_by(_F.not_before, _F.server_uuid)
        .limit(limit)
    )
    return [
        Pending(
            row.server_uuid,
            row.token,
            row.uuid is not None and row.deleted_at is None,
            row.vm_state == VmState.BUILDING,
            row.failures,
        )
        for row in rows
    ]


def remove(connection: sa.Connection, one: Pending) -> None:
    """Remove an entry, unless there was another change since it was read."""
    mine = (_F.server_uuid == one.server_uuid) & (_F.token == one.token)
    connection.execute(filter_changes.delete().where(mine))


def postpone(connection: sa.Connection, one: Pending, seconds: float, *, failed: bool) -> None:
    """Retry an entry later, or sooner if there is another change."""
    mine = (_F.server_uuid == one.server_uuid) & (_F.token == one.token)
    values = {"not_before": clock.after(seconds), "failures": one.failures + failed}
    connection.execute(filter_changes.update().where(mine).values(**values))


def retry_on(connection: sa.Connection, hosts: Collection[str]) -> None:
    """Retry what failed on these hosts at once: their agents are connected again."""
    there = sa.select(servers.c.uuid).where(servers.c.host.in_(sorted(hosts)))
    failed = filter_changes.update().where(_F.failures > 0, _F.server_uuid.in_(there))
    connection.execute(failed.values(not_before=clock.utcnow()))
