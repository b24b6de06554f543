"""What happens to members of scaling groups makes the groups' operations due.

It is written in the transaction in which it happens, as its last part: so nothing is missed, and
groups need not be looked at now and then. A server that is in no group costs nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable

import sqlalchemy as sa

from common import ids
from common.context import RequestContext
from common.resources.groups import CLUSTERS, ZONES, GroupAction, options
from common.resources.states import OPEN_STATES, ResourceType
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.ledger.operations import NewOperation
from conductor.store.records import Server
from conductor.store.transactions import before_commit, note_due
from db.reads.hosts import away as hosts
from db.resources import about
from db.schema import operations, scaling_groups, servers

#: after a change of hosts, groups that are spread over their zones are looked at
SOON_SECONDS = 30.0


def note(connection: sa.Connection, members: Iterable[Server]) -> None:
    """Have the groups of these servers looked at once the transaction is committed."""
    for group_id in {one.member_of for one in members if one.member_of is not None}:
        work = functools.partial(wake, connection, group_id)
        before_commit(connection, f"group {group_id}", work)


def note_hosts(connection: sa.Connection, names: Collection[str]) -> None:
    """Have the groups that have servers on these hosts looked at: the hosts were lost, or are
    back."""
    if not names:
        return
    note_zones(connection, names)
    columns = servers.c
    query = sa.select(columns.member_of).distinct()
    there = columns.host.in_(sorted(names)) & columns.deleted_at.is_(None)
    for group_id in connection.scalars(query.where(there, columns.member_of.is_not(None))):
        work = functools.partial(wake, connection, group_id)
        before_commit(connection, f"group {group_id}", work)


def note_zones(connection: sa.Connection, names: Collection[str]) -> None:
    """Have the groups that are spread over the zones, or the clusters, of these hosts looked at,
    soon: schedulers and placement are notified of a host at about the same time."""
    if not names:
        return
    group = scaling_groups.c
    spread = sa.or_(*(group.config[name].as_string().is_not(None) for name in (ZONES, CLUSTERS)))
    groups = connection.execute(sa.select(group.id, group.config).where(spread)).all()
    if not groups:
        return
    zones, clusters = hosts.zones_of(connection, names), hosts.clusters_of(connection, names)
    for row in groups:
        asked = options(row.config)
        if zones.intersection(asked.zones) or clusters.intersection(asked.clusters):
            work = functools.partial(_look_soon, connection, row.id)
            before_commit(connection, f"zones of group {row.id}", work)


def _look_soon(connection: sa.Connection, group_id: str) -> None:
    mine = about(ResourceType.GROUP, group_id) & operations.c.state.in_(OPEN_STATES)
    opened = connection.execute(sa.select(operations.c.id).where(mine).limit(1)).first()
    if opened is None:
        begin(connection, group_id, SOON_SECONDS)


def wake(connection: sa.Connection, group_id: str) -> None:
    """Make a group's open operations due now, or begin an operation that looks at its members."""
    mine = about(ResourceType.GROUP, group_id) & operations.c.state.in_(OPEN_STATES)
    due = operations.update().where(mine).values(not_before=None)
    if connection.execute(due).rowcount or begin(connection, group_id):
        note_due(connection)


def begin(connection: sa.Connection, group_id: str, seconds: float = 0) -> bool:
    """Begin an operation that looks at a group's members, due after that time; return whether
    there is such a group.

    It is the group's maker's, as the servers are that it creates.
    """
    group = scaling_groups.c
    query = sa.select(group.context, group.timeout_seconds).where(group.id == group_id)
    row = connection.execute(query).first()
    if row is None:
        return False
    ctxt = RequestContext(
        **{**row.context, "request_id": ids.new_request_id(), "overwrite": False}
    )
    ctxt.about(ResourceType.GROUP, group_id)
    new = NewOperation(
        group_id,
        str(ctxt.project_id),
        GroupAction.KEEP,
        owner="",
        lease_seconds=0,
        timeout_seconds=row.timeout_seconds,
        resource_type=ResourceType.GROUP,
    )
    (operation,) = ledger.insert(connection, ctxt, [new])
    leases.postpone(connection, operation.id, seconds)
    return True
