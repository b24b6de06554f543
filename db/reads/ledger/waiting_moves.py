"""Moves of servers that wait for room on another host: those of drains, and evacuations."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from common import codec
from common.guest.requirements import requirements
from common.resources.bulk_migrations import ACTIONS, Move
from common.resources.states import OPEN_STATES
from db import schema

_T = schema.operations.c
_EVACUATE = "evacuate"


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


def read(connection: sa.Connection) -> list[WaitingMove]:
    """Return all moves that wait for room, the longest waiting first.

    One query if there are none, else two.
    """
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
