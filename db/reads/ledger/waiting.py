"""Builds that wait for room on a host."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from common import more_hosts
from common.more_hosts import More, Wanted
from common.resources.states import OPEN_STATES
from db import schema
from db.reads.hosts import hosts

_W, _S, _O = schema.waiting_builds.c, schema.servers.c, schema.operations.c


@dataclass(frozen=True, slots=True)
class Waiting:
    """A build that waits."""

    operation_id: int
    server_uuid: str
    project_id: str
    request_id: str
    gang: str | None
    """The request whose servers are placed together, or not at all; None: it waits alone."""
    needs: Mapping[str, int]
    """Resource class → amount."""
    zone: str | None
    since: datetime.datetime
    until: datetime.datetime
    woken_at: datetime.datetime | None
    overtaken: int
    """By how many that asked later."""
    kept_host: str | None
    """The host that no later one gets."""
    place: int
    """By the time of arrival, from 1."""
    of: int
    """How many wait."""


def _all() -> sa.Subquery:
    place = sa.func.row_number().over(order_by=(_W.since, _W.operation_id))
    kept = sa.select(schema.hosts.c.host).where(schema.hosts.c.uuid == _W.kept).scalar_subquery()
    own = (_W.operation_id, _W.server_uuid, _W.project_id, _O.request_id, _W.gang, _W.needs)
    times = (_W.zone, _W.since, _W.until, _W.woken_at, _W.overtaken)
    return (
        sa.select(*own, *times, kept.label("kept_host"), place.label("place"))
        .add_columns(sa.func.count().over().label("of"))
        .select_from(
            schema.waiting_builds.join(
                schema.operations, (_O.id == _W.operation_id) & _O.state.in_(OPEN_STATES)
            ).join(
                schema.servers,
                (_S.uuid == _W.server_uuid)
                & (_S.operation_id == _W.operation_id)
                & _S.deleted_at.is_(None)
                & _S.host.is_(None),
            )
        )
        .subquery()
    )


def list_waiting(
    connection: sa.Connection, project_id: str | None, *, limit: int, after_place: int = 0
) -> list[Waiting]:
    """Return builds that wait, by their time of arrival; of one project, or all."""
    found = _all()
    query = sa.select(found).where(found.c.place > after_place).order_by(found.c.place)
    if project_id is not None:
        query = query.where(found.c.project_id == project_id)
    return [Waiting(*row) for row in connection.execute(query.limit(limit))]


def of_operations(connection: sa.Connection, operation_ids: Collection[int]) -> dict[int, Waiting]:
    """Return those of these operations that wait; no query for none."""
    if not operation_ids:
        return {}
    found = _all()
    query = sa.select(found).where(found.c.operation_id.in_(sorted(operation_ids)))
    return {row.operation_id: Waiting(*row) for row in connection.execute(query)}


def of_servers(connection: sa.Connection, uuids: Collection[str]) -> dict[str, Waiting]:
    """Return those of these servers that wait, by their UUIDs; no query for none."""
    if not uuids:
        return {}
    found = _all()
    query = sa.select(found).where(found.c.server_uuid.in_(sorted(uuids)))
    return {row.server_uuid: Waiting(*row) for row in connection.execute(query)}


def wanted(connection: sa.Connection) -> list[Wanted]:
    """Return what each build that waits needs. One query."""
    found = _all()
    query = sa.select(found.c.needs, found.c.zone, _S.flavor, _S.image_properties)
    made = []
    for needs, zone, flavor, properties in connection.execute(
        query.join(schema.servers, _S.uuid == found.c.server_uuid)
    ):
        made.append(more_hosts.wanted_of(needs, zone, flavor, properties))
    return made


def more_hosts_for(connection: sa.Connection, asked: Sequence[Wanted]) -> list[More]:
    """Return for each kind of host how many more of it would take these. One query."""
    matter = frozenset().union(*(one.required | one.forbidden for one in asked))
    return [more_hosts.more(kind, asked) for kind in hosts.kinds(connection, matter)]
