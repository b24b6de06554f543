"""Builds that wait for room on a host."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from common.more_hosts import Wanted
from common.resources.states import OPEN_STATES
from db import schema

_W, _S, _O = schema.waiting_builds.c, schema.servers.c, schema.operations.c

#: resource class → the column of servers that has its amount
_AMOUNTS = {"VCPU": _S.vcpus, "MEMORY_MB": _S.memory_mib, "DISK_GB": _S.disk_gib}


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


def wanted(connection: sa.Connection) -> list[Wanted]:
    """Return what each build that waits needs. One query."""
    found = _all()
    return [Wanted(*row) for row in connection.execute(sa.select(found.c.needs, found.c.zone))]


def would_do(connection: sa.Connection, one: Waiting) -> str | None:
    """Return the smallest server of the same project whose end would make room; None: none, or
    it needs what the record doesn't say of servers."""
    if one.needs.keys() - _AMOUNTS.keys():
        return None
    enough = [_AMOUNTS[name] >= amount for name, amount in one.needs.items()]
    query = (
        sa.select(_S.uuid)
        .where(_S.project_id == one.project_id, _S.deleted_at.is_(None), _S.host.is_not(None))
        .where(*enough)
        .order_by(_S.vcpus, _S.memory_mib, _S.disk_gib, _S.id)
        .limit(1)
    )
    return connection.execute(query).scalar()
