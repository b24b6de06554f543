"""The ledger: what was done to servers and other resources, step by step, with the results."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa

from common import clock
from common.errors import Invalid
from common.resources.states import OPEN_STATES, OperationState, ResourceType
from common.resources.volumes import ATTACH, DETACH
from db import resources, schema
from db.reads import keyset
from db.records import FaultRecord, OperationRecord, Record, columns

T = TypeVar("T", bound=Record)

_T = schema.operations.c


@dataclass(frozen=True, slots=True)
class Operation(OperationRecord):
    """One action on one resource, as it is shown."""

    global_request_id: str | None
    message: str | None
    updated_at: datetime.datetime
    finished_at: datetime.datetime | None
    forgotten_at: datetime.datetime | None
    """When its details were deleted."""
    not_before: datetime.datetime | None = None
    """Until when it is not tried again."""


@dataclass(frozen=True, slots=True)
class Event:
    """A step of an attempt."""

    operation_id: int
    attempt: int
    name: str
    sequence: int
    host: str | None
    started_at: datetime.datetime
    finished_at: datetime.datetime | None
    result: str | None
    upid: str | None
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Transition:
    """A server's transition from one state to another."""

    operation_id: int
    from_vm_state: str
    from_task_state: str | None
    to_vm_state: str
    to_task_state: str | None
    at: datetime.datetime


@dataclass(frozen=True, slots=True)
class Decision:
    """A scheduler's decision; `body` is the message `Decision` as plain values."""

    operation_id: int
    attempt: int
    body: Mapping[str, Any]
    created_at: datetime.datetime


@dataclass(frozen=True, slots=True)
class OperationFault(FaultRecord):
    """The failure of an attempt."""

    operation_id: int
    attempt: int


@dataclass(frozen=True)
class Story:
    """An operation with all its details in the ledger, in order of time."""

    operation: Operation
    events: Sequence[Event]
    transitions: Sequence[Transition]
    decisions: Sequence[Decision]
    faults: Sequence[OperationFault]
    held: bool = False
    """Open, and not tried again before its server's hold is released."""


def state_now() -> sa.Case[str]:
    """Return the state, by the leases: with an expired lease it is queued."""
    gone = _T.lease_owner.is_(None) | (_T.lease_expires_at < clock.utcnow())
    abandoned = (_T.state == OperationState.RUNNING) & gone
    return sa.case((abandoned, OperationState.QUEUED), else_=_T.state)


def _select() -> sa.Select[Any]:
    return sa.select(*columns(schema.operations, Operation, state=state_now()))


def list_operations(
    connection: sa.Connection,
    server_uuid: str,
    *,
    limit: int | None = None,
    marker: str | None = None,
    changed_since: datetime.datetime | None = None,
    changed_before: datetime.datetime | None = None,
) -> list[Operation]:
    """Return a page of a server's operations, newest first; `marker` is a request ID.

    `changed_before` includes the whole second that it names.

    Raises Invalid for an unknown marker.
    """
    if limit == 0:
        return []
    statement = _select()
    if changed_since is not None:
        statement = statement.where(_T.updated_at >= changed_since)
    if changed_before is not None:
        statement = statement.where(_T.updated_at <= clock.end_of(changed_before))
    try:
        rows: Sequence[Any] = keyset.read(
            connection,
            statement,
            [keyset.Sort(_T.id, descending=True)],
            keyset.Page(limit, marker),
            _T.request_id,
            visible=[resources.about(ResourceType.SERVER, server_uuid)],
        )
    except keyset.MarkerNotFound as error:
        raise Invalid(f"Marker {marker} could not be found.") from error
    return [Operation(*row) for row in rows]


def find(connection: sa.Connection, server_uuid: str, request_id: str) -> Operation | None:
    """Return the operation of a request on a server, or None; of several the last."""
    query = (
        _select()
        .where(resources.about(ResourceType.SERVER, server_uuid), _T.request_id == request_id)
        .order_by(_T.id.desc())
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else Operation(*row)


def events_of(connection: sa.Connection, operation_ids: Sequence[int]) -> list[Event]:
    """Return the steps of operations, in order of time.

    Conductor and agent both number their steps from 0: the number only orders equal times.
    """
    table = schema.operation_events
    return _of(connection, table, Event, operation_ids, ("attempt", "started_at", "sequence"))


def faults_of(connection: sa.Connection, operation_ids: Sequence[int]) -> list[OperationFault]:
    """Return the faults of operations, in order of time."""
    return _of(connection, schema.faults, OperationFault, operation_ids, ("id",))


def _of(
    connection: sa.Connection,
    table: sa.Table,
    kind: type[T],
    operation_ids: Sequence[int],
    order: Sequence[str],
) -> list[T]:
    query = (
        sa.select(*columns(table, kind))
        .where(table.c.operation_id.in_(operation_ids))
        .order_by(table.c.operation_id, *(table.c[name] for name in order))
    )
    return [kind(*row) for row in connection.execute(query)]


def stories(
    connection: sa.Connection,
    subject: str,
    project_id: str | None = None,
    *,
    limit: int,
    kind: str = ResourceType.SERVER,
) -> list[Story]:
    """Return the operations of a request ID, a global request ID or a resource of this kind.

    The oldest comes first; of more than `limit` only the newest. `project_id`: only that
    project's. Six queries at most, however many operations there are.
    """
    named = (
        (_T.request_id == subject) | (_T.global_request_id == subject)
        if subject.startswith("req-")
        else resources.about(kind, subject)
    )
    return _stories(connection, named, project_id, limit)


def stories_of_volume(
    connection: sa.Connection, volume_id: str, project_id: str | None = None, *, limit: int
) -> list[Story]:
    """Return the operations of a volume as `stories` does, and its last servers' about it."""
    has, row = schema.volume_attachments.c, schema.volumes.c
    now = sa.select(has.server_uuid).where(has.volume_id == volume_id)
    last = sa.select(row.last_user["server_uuid"].as_string()).where(row.id == volume_id)
    of_servers = sa.and_(
        resources.about_servers(now) | resources.about_servers(last),
        _T.action.in_((ATTACH, DETACH)),
        _T.plan["command", "volume_id"].as_string() == volume_id,
    )
    named = resources.about(ResourceType.VOLUME, volume_id) | of_servers
    return _stories(connection, named, project_id, limit)


def _stories(
    connection: sa.Connection,
    named: sa.ColumnElement[bool],
    project_id: str | None,
    limit: int,
) -> list[Story]:
    query = _select().where(named).order_by(_T.id.desc()).limit(limit)
    if project_id is not None:
        query = query.where(_T.project_id == project_id)
    return _whole(connection, [Operation(*row) for row in connection.execute(query)][::-1])


def stories_of(connection: sa.Connection, operation_ids: Sequence[int]) -> list[Story]:
    """Return these operations, in the order of their ids. Six queries at most."""
    query = _select().where(_T.id.in_(operation_ids)).order_by(_T.id)
    return _whole(connection, [Operation(*row) for row in connection.execute(query)])


def _whole(connection: sa.Connection, operations: Sequence[Operation]) -> list[Story]:
    """Return operations with their details."""
    ids = [operation.id for operation in operations]
    if not ids:
        return []
    events = _by_operation(events_of(connection, ids))
    faults = _by_operation(faults_of(connection, ids))
    moves = _by_operation(_of(connection, schema.transitions, Transition, ids, ("id",)))
    chosen = _by_operation(_of(connection, schema.decisions, Decision, ids, ("attempt",)))
    busy = {one.server_uuid for one in operations if one.state in OPEN_STATES}
    held = _held(connection, {uuid for uuid in busy if uuid is not None})
    return [
        Story(
            operation=operation,
            events=events.get(operation.id, ()),
            transitions=moves.get(operation.id, ()),
            decisions=chosen.get(operation.id, ()),
            faults=faults.get(operation.id, ()),
            held=operation.state in OPEN_STATES and operation.server_uuid in held,
        )
        for operation in operations
    ]


def _held(connection: sa.Connection, uuids: set[str]) -> set[str]:
    """Return which of these servers are held; no query for none."""
    if not uuids:
        return set()
    columns = schema.servers.c
    query = sa.select(columns.uuid).where(columns.uuid.in_(sorted(uuids)), columns.held)
    return set(connection.execute(query).scalars())


def _by_operation(records: Sequence[T]) -> dict[int, list[T]]:
    found: dict[int, list[T]] = {}
    for record in records:
        key: int = record.operation_id  # type: ignore[attr-defined]
        found.setdefault(key, []).append(record)
    return found
