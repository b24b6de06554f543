"""Services with their hosts and zones."""

from __future__ import annotations

import collections
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from common import clock
from common.messages.tenures import worker_of
from db import schema
from db.reads.hosts import node_health
from db.reads.servers.servers import COMPUTE
from db.records import columns

_T = schema.services.c
#: the binary of the rows of agents' workers, beside those of the hosts
AGENT = "micronova-agent"


@dataclass(frozen=True, slots=True)
class Service:
    """A row of `services`."""

    id: int
    uuid: str
    binary: str
    host: str
    worker: str
    availability_zone: str
    """An aggregate's, else the host's own."""
    disabled: bool
    disabled_reason: str | None
    forced_down: bool
    version: str
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    last_seen_at: datetime.datetime | None
    volumes_disabled: bool = False
    """Whether no new volumes may be on its host."""
    volumes_disabled_reason: str | None = None
    reached: bool = True
    """Whether the agent reaches its node; true for services without one."""
    trouble: str | None = None
    """Why the node can't be used, as its agent says; None: it can. Of an agents' worker, which
    clusters it carries."""


#: an aggregate's zone takes precedence over the host's own
ZONE = sa.func.coalesce(_T.aggregate_zone, _T.availability_zone).label("availability_zone")
_MADE = {
    "availability_zone": ZONE,
    "reached": node_health.REACHED.label("reached"),
    "trouble": node_health.TROUBLE.label("trouble"),
}
_COLUMNS = columns(schema.services, Service, **_MADE)


def list_services(
    connection: sa.Connection, *, host: str | None = None, binary: str | None = None
) -> list[Service]:
    """Return services, by binary and host; of one host or binary if given."""
    query = sa.select(*_COLUMNS).select_from(node_health.SERVICES).order_by(_T.binary, _T.host)
    if host:
        query = query.where(_T.host == host)
    if binary:
        query = query.where(_T.binary == binary)
    return _with_roles(connection, [Service(*row) for row in connection.execute(query)])


def find(connection: sa.Connection, uuid: str) -> Service | None:
    """Return the service of this UUID, or None."""
    return _one(connection, _T.uuid == uuid)


def find_by_id(connection: sa.Connection, number: int) -> Service | None:
    """Return the service of this row id, as clients before 2.53 name it, or None."""
    return _one(connection, _T.id == number)


def _one(connection: sa.Connection, which: sa.ColumnElement[bool]) -> Service | None:
    query = sa.select(*_COLUMNS).select_from(node_health.SERVICES).where(which)
    row = connection.execute(query).first()
    return None if row is None else _with_roles(connection, [Service(*row)])[0]


def _with_roles(connection: sa.Connection, found: list[Service]) -> list[Service]:
    """Have agents' workers say whether they are active, by one query if there are any."""
    if not any(one.binary == AGENT for one in found):
        return found
    held = collections.defaultdict(set)
    leases = schema.agent_leases.c
    query = sa.select(leases.worker, leases.cluster).where(leases.expires_at > clock.utcnow())
    for worker, cluster in connection.execute(query):
        held[worker_of(worker)].add(cluster)
    return [
        replace(one, trouble=_role(sorted(held[one.host]))) if one.binary == AGENT else one
        for one in found
    ]


def _role(clusters: Sequence[str]) -> str:
    return f"Active: it carries {', '.join(clusters)}." if clusters else "Standby."


@dataclass(frozen=True)
class Zones:
    """The compute hosts, and the zone of each."""

    hosts: Mapping[str, str]
    """{host: its zone}, disabled ones too."""
    available: frozenset[str]
    """Zones with a host that isn't disabled."""


def zones(connection: sa.Connection) -> Zones:
    """Return the zones of all compute hosts."""
    rows = connection.execute(
        sa.select(_T.host, _T.disabled, ZONE).where(_T.binary == COMPUTE)
    ).all()
    return Zones(
        {row.host: row.availability_zone for row in rows},
        frozenset(row.availability_zone for row in rows if not row.disabled),
    )
