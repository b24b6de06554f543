"""Bulk migrations in the ledger, and what they look at."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from common.messages.reports import Category
from common.resources.bulk_migrations import ACTIONS, ENDED, UNDER_WAY, Move
from common.resources.states import OPEN_STATES
from conductor.plans import BulkPlan
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from db.schema import faults, operations, servers

_T = operations.c


def locked(connection: sa.Connection) -> list[Operation]:
    """Return all open ones, locked until the transaction ends: one at a time begins a move."""
    rows = connection.execute(
        sa.select(*ledger.FIELDS)
        .where(_T.action.in_(ACTIONS), _T.state.in_(OPEN_STATES))
        .order_by(_T.id)
        .with_for_update()
    )
    return [ledger.from_row(row._mapping) for row in rows]


def get_locked(connection: sa.Connection, operation_id: int) -> Operation | None:
    """Return an open bulk migration, locked until the transaction ends; None: it isn't open."""
    row = connection.execute(
        sa.select(*ledger.FIELDS)
        .where(_T.id == operation_id, _T.action.in_(ACTIONS), _T.state.in_(OPEN_STATES))
        .with_for_update()
    ).first()
    return None if row is None else ledger.from_row(row._mapping)


def wake_after(connection: sa.Connection, operation_id: int) -> bool:
    """Make all open bulk migrations due now if this migration has ended; return whether it has.

    That one looks for its next move, and others may have waited for the room.
    """
    if ledger.any_open(connection, [operation_id]):
        return False
    ids = [one.id for one in locked(connection)]
    connection.execute(operations.update().where(_T.id.in_(ids)).values(not_before=None))
    return True


def any_ended(connection: sa.Connection, plan: BulkPlan) -> bool:
    """Return whether a migration that is in progress according to the plan has ended."""
    return any(one.state not in OPEN_STATES for one in states(connection, plan).values())


class Mover(NamedTuple):
    """A move of a bulk migration that waits for room where there is none."""

    operation_id: int
    move: Move
    server: Any
    """What decides how much it needs."""


def movers(connection: sa.Connection) -> list[Mover]:
    """Return the moves, not ended, of open bulk migrations that wait for room: those that do, and
    those that may have to. One query if there are none, else two."""
    query = sa.select(*ledger.FIELDS).where(_T.action.in_(ACTIONS), _T.state.in_(OPEN_STATES))
    found = {}
    for row in connection.execute(query):
        operation = ledger.from_row(row._mapping)
        plan = operation.planned(BulkPlan)
        if plan.waits_until is not None:
            its = (one for one in plan.moves if one.state not in ENDED)
            found.update({one.server_uuid: (operation.id, one) for one in its})
    if not found:
        return []
    columns = servers.c
    sizes = (columns.vm_state, columns.vcpus, columns.memory_mib, columns.disk_gib)
    about = sa.select(columns.uuid, *sizes, columns.flavor, columns.image_properties)
    rows = connection.execute(about.where(columns.uuid.in_(sorted(found))))
    return [Mover(*found[row.uuid], row) for row in rows]


def try_now(connection: sa.Connection, waits: Sequence[Mover]) -> None:
    """Have moves that still wait tried now."""
    due = {one.move for one in waits}
    for operation in locked(connection):
        plan = operation.planned(BulkPlan)
        if due.isdisjoint(plan.moves):
            continue
        moves = tuple(
            dataclasses.replace(one, not_before=None) if one in due else one for one in plan.moves
        )
        save(connection, operation, dataclasses.replace(plan, moves=moves))
        leases.make_due(connection, operation.id)


def save(connection: sa.Connection, operation: Operation, plan: BulkPlan, **values: Any) -> None:
    """Store the progress of a locked bulk migration, if it has changed."""
    if values or plan != operation.plan:
        ledger.save(connection, operation.id, plan=plan, **values)


def servers_of(
    connection: sa.Connection, uuids: Sequence[str], host: str | None
) -> list[sa.Row[Any]]:
    """Return these servers and those of the host, less the deleted ones. One query."""
    columns = servers.c
    there = sa.false() if host is None else columns.host == host
    wanted = (
        *(columns.uuid, columns.name, columns.host, columns.vm_state, columns.task_state),
        *(columns.vmid, columns.held, columns.flavor, columns.memory_mib),
    )
    query = sa.select(*wanted).where(columns.uuid.in_(uuids) | there, columns.deleted_at.is_(None))
    return list(connection.execute(query.order_by(columns.memory_mib.desc(), columns.id)))


class Begun(NamedTuple):
    """A migration in progress, or that has ended since the last look."""

    state: str
    message: str | None
    found_no_host: bool = False


_NO_HOST = sa.exists().where(
    faults.c.operation_id == _T.id, faults.c.category == Category.NO_VALID_HOST
)


def states(connection: sa.Connection, plan: BulkPlan) -> Mapping[int, Begun]:
    """Return its migrations in progress. One query, or none."""
    ids = [one.operation_id for one in plan.moves if one.state in UNDER_WAY and one.operation_id]
    if not ids:
        return {}
    query = sa.select(_T.id, _T.state, _T.message, _NO_HOST).where(_T.id.in_(ids))
    return {number: Begun(*row) for number, *row in connection.execute(query)}
