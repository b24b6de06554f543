"""The record's side of the VM sync: servers by VMID, hosts by node."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from common.resources.states import (
    OPEN_STATES,
    InternalAction,
    OperationState,
    ResourceType,
    VmState,
)
from db.schema import hosts, operations, servers, vmids


@dataclass(frozen=True)
class Known:
    """A server without an open operation, as far as the comparison needs it."""

    uuid: str
    vmid: int
    host: str | None
    node: str | None
    vm_state: str
    power_state: int
    operation_id: int | None
    changed_at: datetime.datetime
    saw: str | None = None
    """What the last search for its VM found, if it had no operation since."""


@dataclass(frozen=True)
class HostOf:
    """The compute host of a node."""

    host: str
    worker: str


_C = servers.c
_CHANGED = sa.func.coalesce(_C.updated_at, _C.created_at, type_=_C.created_at.type)
_SAW = operations.c.plan["saw"].as_string()
_KNOWN = (
    *(_C.uuid, _C.vmid, _C.host, _C.node, _C.vm_state, _C.power_state, _C.operation_id),
    *(_CHANGED, _SAW),
)
"""In the order of ``Known``."""


def idle(column: sa.ColumnElement[str], besides: int | None = None) -> sa.ColumnElement[bool]:
    """Return the condition that a server has no open operation (``besides`` one).

    A search whose VM was found, and that only moves the allocation, doesn't count.
    """
    table = operations.alias("open_operations")
    settling = (table.c.action == InternalAction.FOLLOW) & (
        table.c.state == OperationState.UNWINDING
    )
    others = sa.true() if besides is None else table.c.id != besides
    return ~sa.exists().where(
        table.c.resource_type == ResourceType.SERVER,
        table.c.resource_id == column,
        table.c.state.in_(OPEN_STATES),
        ~settling,
        others,
    )


def known(
    connection: sa.Connection, cluster: str, ids: Sequence[int], low: int | None, high: int | None
) -> list[Known]:
    """Return the idle servers with these VMIDs, and between ``low`` and ``high``: one query.

    The journal of reserved VMIDs and the servers' own records must agree.
    """
    wanted: sa.ColumnElement[bool] = vmids.c.vmid.in_(list(ids))
    if low is not None and high is not None:
        wanted = wanted | vmids.c.vmid.between(low, high)
    columns = servers.c
    rows = connection.execute(
        sa.select(*_KNOWN)
        .select_from(
            vmids.join(servers, columns.uuid == vmids.c.server_uuid).outerjoin(
                operations, operations.c.id == columns.operation_id
            )
        )
        .where(
            vmids.c.cluster == cluster,
            wanted,
            columns.cluster == vmids.c.cluster,
            columns.vmid == vmids.c.vmid,
            columns.deleted_at.is_(None),
            columns.task_state.is_(None),
            idle(columns.uuid),
        )
    )
    return [Known(*row) for row in rows]


def in_error(
    connection: sa.Connection,
    before: datetime.datetime,
    long_before: datetime.datetime,
    limit: int,
    server_uuid: str | None = None,
) -> list[Known]:
    """Return idle servers in ERROR that once ran and have a VM that may work: one query.

    Those last changed before ``before``, and last searched for, and found, before
    ``long_before``. VMs that vanished are reported when they are seen again.
    """
    columns, changed, saw = servers.c, _CHANGED, _SAW
    # An ERROR that an administrator set remains, unless a server is named.
    reset = operations.c.action == InternalAction.RESET_STATE
    asked = () if server_uuid is not None else (reset.is_not(sa.true()),)
    query = (
        sa.select(*_KNOWN)
        .select_from(servers.outerjoin(operations, operations.c.id == columns.operation_id))
        .where(
            columns.vm_state == VmState.ERROR,
            columns.task_state.is_(None),
            columns.deleted_at.is_(None),
            columns.launched_at.is_not(None),
            columns.vmid.is_not(None),
            columns.node.is_not(None),
            ~columns.held,
            *asked,
            saw.is_(None) & (changed < before) | (saw == "moved") & (changed < long_before),
            idle(columns.uuid),
        )
        .order_by(columns.id)
        .limit(limit)
    )
    if server_uuid is not None:
        query = query.where(columns.uuid == server_uuid)
    return [Known(*row) for row in connection.execute(query)]


def is_idle(connection: sa.Connection, server_uuid: str, besides: int | None = None) -> bool:
    """Return whether no operation, ``besides`` one, is open for this server."""
    query = sa.select(idle(sa.literal(server_uuid), besides))
    return bool(connection.execute(query).scalar_one())


def hosts_of(connection: sa.Connection, cluster: str) -> dict[str, HostOf]:
    """Return the compute hosts of a cluster, by node."""
    rows = connection.execute(
        sa.select(hosts.c.node, hosts.c.host, hosts.c.worker).where(hosts.c.cluster == cluster)
    )
    return {row.node: HostOf(row.host, row.worker) for row in rows}


def nearest(connection: sa.Connection, cluster: str, node: str | None) -> list[tuple[str, str]]:
    """Return (host, node) of every host of a cluster, that of ``node`` first."""
    rows = connection.execute(
        sa.select(hosts.c.host, hosts.c.node).where(hosts.c.cluster == cluster)
    )
    return sorted(((row.host, row.node) for row in rows), key=lambda one: (one[1] != node, one[0]))


def answering(
    connection: sa.Connection, down: Collection[str], *, certain: bool = True
) -> dict[str, tuple[str, ...]]:
    """Return the clusters that answer their agents, each with its live workers.

    An agent that lives shows all nodes of a cluster that doesn't answer as offline. With
    ``certain`` False that may be a report of long ago, and such clusters are among them.
    """
    columns = hosts.c
    query = sa.select(
        columns.host, columns.cluster, columns.worker, columns.facts["online"].as_boolean()
    )
    workers: defaultdict[str, set[str]] = defaultdict(set)
    answers: set[str] = set()
    for host, cluster, worker, online in connection.execute(query):
        if host not in down:
            workers[cluster].add(worker)
            answers |= {cluster} if online or not certain else set()
    return {one: tuple(sorted(workers[one])) for one in sorted(answers)}


def worker_in(
    connection: sa.Connection, cluster: str, node: str | None, down: Collection[str]
) -> str | None:
    """Return a live worker with agents of the cluster, if possible that of ``node``."""
    alive = {
        name: one.worker
        for name, one in hosts_of(connection, cluster).items()
        if one.host not in down
    }
    if node is not None and node in alive:
        return alive[node]
    return next((worker for _, worker in sorted(alive.items())), None)
