"""Bulk migrations: drains and rebalances, from the ledger."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import codec
from common.resources.bulk_migrations import ACTIONS, Move, Steering
from db import schema
from db.reads.ledger.operations import state_now

_T = schema.operations.c


@dataclass(frozen=True)
class BulkMigration:
    """One operation of the ledger that moves many servers."""

    id: int
    action: str
    host: str | None
    """The host that is drained."""
    state: str
    message: str | None
    request_id: str
    user_id: str
    started_at: datetime.datetime
    updated_at: datetime.datetime
    finished_at: datetime.datetime | None
    at_once: int
    live_only: bool
    waits_until: str | None
    """Until when servers that find no host are tried again, however often."""
    steering: str
    moves: Sequence[Move]


def _select() -> sa.Select[Any]:
    times = (_T.started_at, _T.updated_at, _T.finished_at)
    return sa.select(
        *(_T.id, _T.action, state_now().label("state"), _T.message, _T.request_id, _T.user_id),
        *(*times, _T.plan),
    ).where(_T.action.in_(ACTIONS))


def find(connection: sa.Connection, number: int) -> BulkMigration | None:
    """Return one, or None."""
    row = connection.execute(_select().where(_T.id == number)).first()
    return None if row is None else _of(row._mapping)


def newest(connection: sa.Connection, limit: int, host: str | None = None) -> list[BulkMigration]:
    """Return the last ones, newest first; with a host only its drains. One query."""
    query = _select().order_by(_T.id.desc()).limit(limit)
    if host is not None:
        query = query.where(_T.resource_type == "host", _T.resource_id == host)
    return [_of(row._mapping) for row in connection.execute(query)]


def stages(connection: sa.Connection, operation_ids: Iterable[int]) -> Mapping[int, str]:
    """Return the stage that each of these open operations has reached. One query, or none."""
    ids = sorted(operation_ids)
    if not ids:
        return {}
    query = sa.select(_T.id, _T.stage).where(
        _T.id.in_(ids), _T.finished_at.is_(None), _T.stage.is_not(None)
    )
    return dict(connection.execute(query).all())


def _of(row: Mapping[Any, Any]) -> BulkMigration:
    values = dict(row)
    plan = values.pop("plan")
    return BulkMigration(
        **values,
        host=plan.get("target", {}).get("host"),
        at_once=plan.get("at_once", 1),
        live_only=plan.get("live_only", False),
        waits_until=plan.get("waits_until"),
        steering=plan.get("steering", Steering.GO),
        moves=[codec.load(Move, one) for one in plan.get("moves", ())],
    )
