"""Bulk migrations: drains and rebalances, from the ledger."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from common import codec
from common.guest.requirements import requirements
from common.resources.bulk_migrations import ACTIONS, Move, Steering
from common.resources.states import OPEN_STATES
from db import schema
from db.reads.ledger.operations import state_now

_T = schema.operations.c
_EVACUATE = "evacuate"


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


@dataclass(frozen=True, slots=True)
class WaitingMove:
    """The move of a server that waits for room on another host."""

    bulk_migration: int | None
    """None: it is an evacuation."""
    action: str
    request_id: str
    server_uuid: str
    project_id: str
    source: str
    needs: Mapping[str, int]
    """Resource class → amount."""
    zone: str | None
    since: datetime.datetime
    until: str | None
    reason: str | None


class _Waits(NamedTuple):
    """What the ledger says of a move that waits."""

    bulk_migration: int | None
    action: str
    request_id: str
    source: str
    since: datetime.datetime
    until: str | None
    reason: str | None


def _moves(row: Any) -> Iterator[tuple[str, _Waits]]:
    """Yield the servers of a bulk migration that wait for room."""
    for one in row.plan.get("moves", ()):
        move = codec.load(Move, one)
        if move.waits_since is not None and move.waits_for_room:
            yield (
                move.server_uuid,
                _Waits(
                    *(row.id, row.action, row.request_id, move.source, move.waits_since),
                    *(row.plan.get("waits_until"), move.reason),
                ),
            )


def _evacuation(row: Any) -> Iterator[tuple[str, _Waits]]:
    """Yield the server of an evacuation, if that waits for room."""
    plan = row.plan
    if since := plan.get("waits_since"):
        yield (
            row.resource_id,
            _Waits(
                *(None, row.action, row.request_id, plan["source"]["host"]),
                *(datetime.datetime.fromisoformat(since), plan.get("waits_until"), row.message),
            ),
        )


def waiting_moves(connection: sa.Connection) -> list[WaitingMove]:
    """Return the moves and evacuations that wait for room, by since when. One query if there are
    none, else two."""
    columns = (_T.id, _T.action, _T.request_id, _T.resource_id, _T.message, _T.plan)
    actions = (*ACTIONS, _EVACUATE)
    query = sa.select(*columns).where(_T.action.in_(actions), _T.state.in_(OPEN_STATES))
    waits: dict[str, _Waits] = {}
    for row in connection.execute(query):
        waits |= dict(_evacuation(row) if row.action == _EVACUATE else _moves(row))
    if not waits:
        return []
    of = schema.servers.c
    about = sa.select(
        *(of.uuid, of.project_id, of.vcpus, of.memory_mib, of.disk_gib, of.flavor),
        *(of.image_properties, of.pinned_availability_zone),
    )
    found = []
    for server in connection.execute(about.where(of.uuid.in_(sorted(waits)))):
        needs = requirements(
            server.vcpus,
            server.memory_mib,
            server.disk_gib,
            server.flavor.get("extra_specs") or {},
            server.image_properties,
        )
        found.append(
            WaitingMove(
                server_uuid=server.uuid,
                project_id=server.project_id,
                needs=needs.resources,
                zone=server.pinned_availability_zone,
                **waits[server.uuid]._asdict(),
            )
        )
    return sorted(found, key=lambda one: (one.since, one.server_uuid))


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
