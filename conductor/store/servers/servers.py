"""Rows of servers, as the conductor reads and writes them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from common.context import RequestContext
from common.errors import ServerNotFound
from common.messages.guests import GuestOwner
from common.resources.states import ResourceType, VmState
from conductor.store import change_events
from conductor.store.ledger import group_news
from conductor.store.records import Server
from db.records import fields
from db.schema import hosts, operations, servers

_FIELDS = list(fields(servers, Server))
_NAMES = set(_FIELDS)
_COLUMNS = [servers.c[name].label(name) for name in _FIELDS]
#: the columns of a Server, without those of other tables
BESIDE = [servers.c[name].label(f"server_{name}") for name in _FIELDS]
#: the columns of a row that has no value for them
_EMPTY: dict[str, Any] = dict.fromkeys(_FIELDS)
_INSERT = servers.insert().returning(servers.c.id, sort_by_parameter_order=True)
#: whether the root disk is the server's own, which an image was made into; no volume
OWN_ROOT = ~sa.func.coalesce(servers.c.flavor["volume_backed"].as_boolean(), sa.false())
# Built once: statements of so many columns take longer to build than to execute.
_GET = sa.select(*_COLUMNS).where(servers.c.uuid == sa.bindparam("uuid"))
_GET_LOCKED = _GET.with_for_update()
_GET_MANY = sa.select(*_COLUMNS).where(servers.c.uuid.in_(sa.bindparam("uuids", expanding=True)))
# In one order, so that two conductors don't wait for each other.
_LOCK_MANY = _GET_MANY.order_by(servers.c.id).with_for_update()


def get(connection: sa.Connection, uuid: str, *, lock: bool = False) -> Server:
    """Return a server by UUID, deleted ones included. Raises ServerNotFound."""
    row = connection.execute(_GET_LOCKED if lock else _GET, {"uuid": uuid}).first()
    if row is None:
        raise ServerNotFound(f"Instance {uuid} could not be found.", server_uuid=uuid)
    return Server(**row._mapping)


def beside(row: Mapping[Any, Any]) -> Server | None:
    """Return the server of a row that has the columns ``BESIDE``; None where it has none."""
    if row["server_id"] is None:
        return None
    return Server(**{name: row[f"server_{name}"] for name in _FIELDS})


def get_many(connection: sa.Connection, uuids: Sequence[str]) -> dict[str, Server]:
    """Return servers by UUID, in one query; missing ones are left out."""
    rows = connection.execute(_GET_MANY, {"uuids": list(uuids)})
    return {row.uuid: Server(**row._mapping) for row in rows}


def locked(connection: sa.Connection, uuids: Sequence[str]) -> dict[str, Server]:
    """Return servers as ``get_many``; they don't change until the transaction ends."""
    rows = connection.execute(_LOCK_MANY, {"uuids": list(uuids)})
    return {row.uuid: Server(**row._mapping) for row in rows}


def hosts_of(
    connection: sa.Connection, uuids: Sequence[str], project_id: str | None
) -> dict[str, str]:
    """Return the host of each of these servers that has one, deleted ones left out. One query.

    Only servers of this project count; None: of any. The answer doesn't show whether others
    exist.
    """
    if not uuids:
        return {}
    theirs = () if project_id is None else (servers.c.project_id == project_id,)
    rows = connection.execute(
        sa.select(servers.c.uuid, servers.c.host).where(
            servers.c.uuid.in_(uuids),
            servers.c.host.is_not(None),
            servers.c.deleted_at.is_(None),
            *theirs,
        )
    )
    return {row.uuid: row.host for row in rows}


def alive(
    connection: sa.Connection, uuid: str, project_id: str | None, *, lock: bool = True
) -> Server:
    """Return a server that is not deleted, of this project (None: any). Raises ServerNotFound."""
    server = get(connection, uuid, lock=lock)
    foreign = project_id is not None and server.project_id != project_id
    if foreign or server.deleted_at is not None:
        raise ServerNotFound(f"Instance {uuid} could not be found.", server_uuid=uuid)
    return server


def soft_deleted(connection: sa.Connection, before: datetime.datetime, limit: int) -> list[str]:
    """Return the oldest servers that were soft-deleted, or not restored, before that time."""
    query = (
        sa.select(servers.c.uuid)
        .select_from(servers.outerjoin(operations, operations.c.id == servers.c.operation_id))
        .where(
            servers.c.vm_state == VmState.SOFT_DELETED,
            servers.c.task_state.is_(None),
            servers.c.deleted_at.is_(None),
            operations.c.id.is_(None) | (operations.c.finished_at < before),
        )
        .order_by(servers.c.id)
        .limit(limit)
    )
    return list(connection.execute(query).scalars())


def owners(connection: sa.Connection, worker: str) -> list[GuestOwner]:
    """Return whose the VMs on a worker's hosts are. One query."""
    columns = servers.c
    query = (
        sa.select(columns.cluster, columns.vmid, columns.uuid, columns.project_id)
        .join(hosts, hosts.c.host == columns.host)
        .where(hosts.c.worker == worker, columns.deleted_at.is_(None), columns.vmid.is_not(None))
    )
    return [GuestOwner(*row) for row in connection.execute(query)]


def exists(connection: sa.Connection, uuid: str) -> bool:
    """Return whether a server has, or had, this UUID."""
    query = sa.select(servers.c.id).where(servers.c.uuid == uuid)
    return connection.execute(query).first() is not None


def is_held(connection: sa.Connection, server: Server) -> bool:
    """Return whether an operator holds the server."""
    query = sa.select(servers.c.held).where(servers.c.id == server.id)
    return bool(connection.execute(query).scalar_one())


def insert(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> list[Server]:
    """Insert servers, in one statement; return them."""
    keys = connection.execute(_INSERT, rows).scalars().all()
    made = [
        Server(**{**_EMPTY, **{name: row[name] for name in row.keys() & _NAMES}, "id": key})
        for key, row in zip(keys, rows, strict=True)
    ]
    change_events.note(connection, map(change_events.Made, made, rows))
    return made


def change(
    connection: sa.Connection,
    server: Server,
    values: Mapping[str, Any],
    ctxt: RequestContext | None = None,
) -> None:
    """Change columns that are no states; ``transitions`` changes states.

    ``ctxt`` is the request that asks for it, where there is no operation to name it.
    """
    change_events.note(connection, [change_events.Changed(server, values, ctxt)])
    if not _OF_CUSTODY.isdisjoint(values):
        group_news.note(connection, [server])
    connection.execute(
        servers.update()
        .where(servers.c.id == server.id)
        .values({servers.c[key]: value for key, value in values.items()})
    )


#: columns that say whether a group may do something with its member
_OF_CUSTODY = frozenset({"held", "locked_by"})


def created(connection: sa.Connection, uuids: Sequence[str]) -> list[Any]:
    """Return (uuid, reservation_id, deleted_at, context of its create) of those of these servers
    that there are or were, in launch order. One query."""
    made = (operations.c.action == "create") & (operations.c.resource_id == servers.c.uuid)
    query = (
        sa.select(
            servers.c.uuid, servers.c.reservation_id, servers.c.deleted_at, operations.c.context
        )
        .join(operations, made & (operations.c.resource_type == ResourceType.SERVER))
        .where(servers.c.uuid.in_(list(uuids)))
        .order_by(servers.c.launch_index)
    )
    return list(connection.execute(query))
