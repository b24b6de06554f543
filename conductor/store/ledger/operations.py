"""The ledger's rows: operations, their events, faults and decisions."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from common import clock
from common.context import RequestContext
from common.failures import RULES, remedy
from common.messages.reports import Category, Failure, Report, Step
from common.messages.scheduling import Decision
from common.resources.states import OPEN_STATES, OperationState, ResourceType
from common.rpc import deadlines
from conductor import plans
from conductor.plans import NOTHING_ASKED, NOTHING_PLANNED, Params, Plan
from conductor.store import change_events
from conductor.store.ledger import ledger_metrics, request_steps, steps
from conductor.store.records import Operation
from db import resources
from db.records import columns, fields
from db.schema import decisions, faults, operation_events, operations

#: resources that one statement names
_CHUNK = 500


_NAMES = list(fields(operations, Operation))
#: the columns of an Operation
FIELDS = columns(operations, Operation)
# Built once: names are bound parameters, and so are the columns that an update sets.
_INSERT = operations.insert().returning(operations.c.id, sort_by_parameter_order=True)
_GET = sa.select(*FIELDS).where(operations.c.id == sa.bindparam("id"))
_SAVE = operations.update().where(operations.c.id == sa.bindparam("of"))
_CLOSE = operations.update().where(
    operations.c.id.in_(sa.bindparam("those", expanding=True)),
    operations.c.state.in_(OPEN_STATES),
)
_MEASURED = (
    *(operations.c.id, operations.c.resource_type, operations.c.resource_id),
    *(operations.c.action, operations.c.started_at),
)
_CLOSE_AND_RETURN = _CLOSE.returning(*_MEASURED)
_CLOSING = sa.select(*_MEASURED).where(*_CLOSE._where_criteria)


def from_row(row: Mapping[Any, Any]) -> Operation:
    """Return an operation from the mapping of its row, which may have more columns."""
    values = {name: row[name] for name in _NAMES}
    values["plan"] = plans.load_plan(values["action"], values["plan"])
    values["params"] = plans.load_params(values["action"], values["params"])
    return Operation(**values)


def readable(rows: Iterable[sa.Row[Any]]) -> tuple[list[Operation], list[int]]:
    """Return the operations of rows, and the IDs of those that a newer release wrote so that this
    one can't read them."""
    found, unreadable = [], []
    for row in rows:
        try:
            found.append(from_row(row._mapping))
        except ValueError:
            unreadable.append(row.id)
    return found, unreadable


def unreadable(connection: sa.Connection) -> tuple[int, list[tuple[int, str]]]:
    """Return how many operations are open, and (ID, action) of those among them that this release
    could not continue."""
    query = sa.select(*FIELDS).where(operations.c.state.in_(OPEN_STATES)).order_by(operations.c.id)
    rows = connection.execute(query).all()
    lost = set(readable(rows)[1])
    lost |= {row.id for row in rows if row.action not in plans.KNOWN_ACTIONS}
    return len(rows), [(row.id, row.action) for row in rows if row.id in lost]


@dataclass(frozen=True)
class NewOperation:
    """The first values of an operation."""

    resource_id: str
    project_id: str
    action: str
    owner: str
    lease_seconds: float
    timeout_seconds: float
    params: Params = NOTHING_ASKED
    plan: Plan = NOTHING_PLANNED
    resource_type: ResourceType = ResourceType.SERVER
    quota: Step | None = None
    """How the quota was taken, if it was."""
    stage: str | None = None
    """The stage that the owner, an agent's worker, is given; None: a conductor begins."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """What is stored with the context of the request."""


def insert(
    connection: sa.Connection, ctxt: RequestContext, new: Sequence[NewOperation]
) -> list[Operation]:
    """Insert the operations of one request; see ``insert_all``."""
    return insert_all(connection, [(ctxt, item) for item in new])


def insert_all(
    connection: sa.Connection, new: Sequence[tuple[RequestContext, NewOperation]]
) -> list[Operation]:
    """Insert the operations in one statement, and their request events in another.

    Their owners hold the first leases.
    """
    now = clock.utcnow()
    rows = [_row(ctxt, item, now) for ctxt, item in new]
    keys = connection.execute(_INSERT, rows).scalars().all()
    asked = {id(ctxt): request_steps.request(ctxt) for ctxt, _ in new}
    first = [
        steps.row(key, 1, None, step)
        for key, (ctxt, item) in zip(keys, new, strict=True)
        for step in (asked[id(ctxt)], item.quota)
        if step is not None
    ]
    if first:
        connection.execute(operation_events.insert(), first)
    begun = [
        Operation(
            id=key,
            **{name: row[name] for name in _NAMES if name not in {"id", "plan", "params"}},
            params=item.params,
            plan=item.plan,
        )
        for key, row, (_, item) in zip(keys, rows, new, strict=True)
    ]
    change_events.note(connection, map(change_events.Begun, begun))
    return begun


def _row(ctxt: RequestContext, new: NewOperation, now: datetime.datetime) -> dict[str, Any]:
    return {
        "resource_type": new.resource_type,
        "resource_id": new.resource_id,
        "project_id": new.project_id,
        "user_id": ctxt.user_id or "",
        "request_id": ctxt.request_id,
        "global_request_id": ctxt.global_request_id,
        "action": new.action,
        "state": OperationState.RUNNING,
        "attempt": 1,
        "lease_owner": new.owner,
        "lease_expires_at": now + datetime.timedelta(seconds=new.lease_seconds),
        "deadline": now + datetime.timedelta(seconds=new.timeout_seconds),
        # ``asked`` is stored as a step
        "context": {**ctxt.to_message(), "asked": None, "call": deadlines.call(), **new.marks},
        "params": new.params,
        "plan": new.plan,
        "stage": new.stage,
        "message": None,
        "overslept": False,
        "may_run": 0,
        "started_at": now,
        "updated_at": now,
    }


def get(connection: sa.Connection, operation_id: int) -> Operation | None:
    """Return an operation by its id."""
    row = connection.execute(_GET, {"id": operation_id}).first()
    return None if row is None else from_row(row._mapping)


def save(connection: sa.Connection, operation_id: int, **values: Any) -> None:
    """Change columns of an operation; a value may be an expression."""
    computed = {key: value for key, value in values.items() if isinstance(value, sa.ClauseElement)}
    plain = {key: value for key, value in values.items() if key not in computed}
    connection.execute(
        _SAVE.values(**computed) if computed else _SAVE,
        {"of": operation_id, "updated_at": clock.utcnow(), **plain},
    )


def close(
    connection: sa.Connection, operation_id: int, state: OperationState, message: str | None = None
) -> bool:
    """End an operation, once; delete the secrets that the user sent. Say whether it was open."""
    return close_all(connection, [operation_id], state, message) == 1


def close_all(
    connection: sa.Connection,
    operation_ids: Sequence[int],
    state: OperationState,
    message: str | None = None,
) -> int:
    """End several operations as `close` does, in one statement. Return how many were open."""
    now, those = clock.utcnow(), sorted(operation_ids)
    returns_rows = connection.dialect.update_returning
    # MariaDB doesn't return rows of an update.
    found = [] if returns_rows else connection.execute(_CLOSING, {"those": those}).all()
    done = connection.execute(
        _CLOSE_AND_RETURN if returns_rows else _CLOSE,
        {
            "those": those,
            "state": state,
            "message": message,
            "updated_at": now,
            "finished_at": now,
            "lease_owner": None,
            "lease_expires_at": None,
            "not_before": None,
            "params": {},
        },
    )
    ended = done.all() if returns_rows else found
    ledger_metrics.ended(connection, ended, state)
    change_events.note(
        connection,
        (
            change_events.Ended(
                row.id, row.action, row.resource_type, row.resource_id, state, message
            )
            for row in ended
        ),
    )
    return len(ended)


def open_of(
    connection: sa.Connection, resource_id: str, resource_type: str = ResourceType.SERVER
) -> list[int]:
    """Return the ids of a resource's open operations, by default a server's."""
    mine = resources.about(resource_type, resource_id)
    return list(
        connection.execute(
            sa.select(operations.c.id)
            .where(mine, operations.c.state.in_(OPEN_STATES))
            .order_by(operations.c.id)
        ).scalars()
    )


def open_with(connection: sa.Connection, server_uuid: str, action: str) -> list[Operation]:
    """Return a server's open operations of an action."""
    mine = resources.about(ResourceType.SERVER, server_uuid)
    query = sa.select(*FIELDS).where(
        mine, operations.c.action == action, operations.c.state.in_(OPEN_STATES)
    )
    return [from_row(row) for row in connection.execute(query).mappings()]


def begun_about(
    connection: sa.Connection, resource_type: str, action: str, resource_ids: Sequence[str]
) -> frozenset[str]:
    """Return those of these resources that have, or had, such an operation."""
    found: set[str] = set()
    for start in range(0, len(resource_ids), _CHUNK):
        query = sa.select(operations.c.resource_id).where(
            operations.c.resource_type == resource_type,
            operations.c.resource_id.in_(resource_ids[start : start + _CHUNK]),
            operations.c.action == action,
        )
        found |= set(connection.execute(query).scalars())
    return frozenset(found)


@dataclass(frozen=True)
class Ended:
    """How far an operation is, and the kind of its first fault; None: it has none."""

    state: str
    category: str | None


def ended(connection: sa.Connection, operation_id: int) -> Ended | None:
    """Return how an operation ended, or how far it is; None: there is none."""
    first = sa.select(sa.func.min(faults.c.id)).where(faults.c.operation_id == operation_id)
    row = connection.execute(
        sa.select(operations.c.state, faults.c.category)
        .select_from(operations.outerjoin(faults, faults.c.id == first.scalar_subquery()))
        .where(operations.c.id == operation_id)
    ).first()
    return None if row is None else Ended(row.state, row.category)


def last_fault(connection: sa.Connection, resource_id: str, resource_type: str) -> Failure | None:
    """Return the last fault of a resource's operations; None: there is none."""
    mine = resources.about(resource_type, resource_id)
    query = (
        sa.select(faults)
        .join(operations, operations.c.id == faults.c.operation_id)
        .where(mine)
        .order_by(faults.c.id.desc())
    )
    row = connection.execute(query.limit(1)).first()
    if row is None:
        return None
    return Failure(
        Category(row.category),
        row.message,
        host=row.host,
        upid=row.upid,
        log_tail=tuple(row.log_tail or ()),
        cleaned=tuple(row.cleaned or ()),
        left=tuple(row.left or ()),
        remedy=row.remedy,
        owner_message=row.owner_message,
    )


def lost(connection: sa.Connection, ids: Collection[int]) -> frozenset[int]:
    """Return those that the ledger doesn't have. As operations are never deleted, the database
    lost its last commits, or was put back."""
    columns = operations.c
    known = connection.scalars(sa.select(columns.id).where(columns.id.in_(ids)))
    return frozenset(ids) - frozenset(known)


def any_open(connection: sa.Connection, ids: Sequence[int]) -> bool:
    """Return whether any of these operations has not ended."""
    query = sa.select(operations.c.id).where(
        operations.c.id.in_(ids), operations.c.state.in_(OPEN_STATES)
    )
    return connection.execute(query.limit(1)).first() is not None


def record_steps(connection: sa.Connection, reports: Iterable[Report]) -> None:
    """Store the steps that agents report; a later report of a step replaces the earlier."""
    rows = [
        steps.row(report.operation_id, report.attempt, report.host, step)
        for report in reports
        for step in report.steps
    ]
    upsert_events(connection, rows)


def conductor_event(operation: Operation, step: Step) -> dict[str, Any]:
    """Return the row of a step of the conductor itself."""
    return steps.row(operation.id, operation.attempt, None, step)


#: Insert or replace rows of steps; see there.
upsert_events = steps.upsert


def record_failure(connection: sa.Connection, operation: Operation, failure: Failure) -> None:
    """Store the fault of an attempt; faults of earlier attempts are not removed."""
    rule = RULES[failure.category]
    ledger_metrics.fault(connection, operation.action, failure.category)
    connection.execute(
        faults.insert(),
        {
            "server_uuid": operation.server_uuid,
            "operation_id": operation.id,
            "request_id": operation.request_id,
            "attempt": operation.attempt,
            "code": rule.code,
            "category": failure.category,
            "message": failure.message,
            "owner_message": failure.owner_message,
            "host": failure.host,
            "upid": failure.upid,
            "log_tail": list(failure.log_tail),
            "cleaned": list(failure.cleaned),
            "left": list(failure.left),
            "remedy": remedy(failure, operation.action, operation.server_uuid),
            "created_at": clock.utcnow(),
        },
    )


def record_decision(connection: sa.Connection, operation: Operation, decision: Decision) -> None:
    """Store a decision; see ``record_decisions``."""
    record_decisions(connection, [(operation, decision)])


def record_decisions(
    connection: sa.Connection, made: Sequence[tuple[Operation, Decision]]
) -> None:
    """Store decisions under their request IDs; deciding an attempt again replaces it."""
    now = clock.utcnow()
    rows = [
        {
            "operation_id": operation.id,
            "attempt": operation.attempt,
            "server_uuid": operation.server_uuid,
            "request_id": operation.request_id,
            # As JSON would make it.
            "body": decision,
            "created_at": now,
        }
        for operation, decision in made
    ]
    connection.execute(_replace_decision(connection.dialect.name), rows)


@functools.cache
def _replace_decision(dialect: str) -> Any:
    """Return the statement that inserts a decision, or replaces that of the same attempt."""
    changing = ("server_uuid", "request_id", "body", "created_at")
    if dialect in {"mysql", "mariadb"}:
        from sqlalchemy.dialects.mysql import insert as mysql_insert

        new = mysql_insert(decisions)
        return new.on_duplicate_key_update({name: new.inserted[name] for name in changing})
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as conflict_insert
    else:
        from sqlalchemy.dialects.sqlite import insert as conflict_insert  # type: ignore[assignment]
    inserted = conflict_insert(decisions)
    return inserted.on_conflict_do_update(
        index_elements=["operation_id", "attempt"],
        set_={name: inserted.excluded[name] for name in changing},
    )
