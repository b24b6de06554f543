"""Host aggregates: their metadata and hosts."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common.resources.aggregates import ZONE
from db import schema

_T = schema.aggregates.c
_HOSTS = schema.aggregate_hosts.c
_VERSIONS = schema.aggregate_versions.c


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A group of hosts; the hosts are sorted by name."""

    id: int
    uuid: str
    name: str
    metadata: Mapping[str, str]
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    hosts: tuple[str, ...]

    @property
    def zone(self) -> str | None:
        """The availability zone that it makes of its hosts, if any."""
        return self.metadata.get(ZONE)


_COLUMNS = (_T.id, _T.uuid, _T.name, _T.meta, _T.created_at, _T.updated_at)


def list_aggregates(connection: sa.Connection) -> list[Aggregate]:
    """Return all aggregates, in order of age: one query."""
    return _read(connection, sa.true())


def of_host(connection: sa.Connection, host: str) -> list[Aggregate]:
    """Return the aggregates that a host is in, with all their hosts."""
    mine = sa.select(_HOSTS.aggregate_id).where(_HOSTS.host == host)
    return _read(connection, _T.id.in_(mine))


def find(connection: sa.Connection, number: int) -> Aggregate | None:
    """Return the aggregate with this ID, or None."""
    return next(iter(_read(connection, _T.id == number)), None)


def version(connection: sa.Connection) -> int:
    """Return how often aggregates were changed: the same version, the same aggregates."""
    return int(connection.execute(sa.select(_VERSIONS.version)).scalar() or 0)


def _read(connection: sa.Connection, which: sa.ColumnElement[bool]) -> list[Aggregate]:
    query = (
        sa.select(*_COLUMNS, _HOSTS.host)
        .select_from(
            schema.aggregates.outerjoin(schema.aggregate_hosts, _HOSTS.aggregate_id == _T.id)
        )
        .where(which)
        .order_by(_T.id, _HOSTS.host)
    )
    return list(_grouped(connection.execute(query)))


def _grouped(rows: Iterable[Any]) -> Iterable[Aggregate]:
    """Return one aggregate for its rows, which have a host each, or none."""
    found: dict[int, tuple[Any, list[str]]] = {}
    for row in rows:
        _, hosts = found.setdefault(row.id, (row, []))
        if row.host is not None:
            hosts.append(row.host)
    for row, hosts in found.values():
        yield Aggregate(
            row.id, row.uuid, row.name, row.meta, row.created_at, row.updated_at, tuple(hosts)
        )
