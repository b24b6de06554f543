"""Compute hosts whose nodes do not answer, or that an administrator has marked as down."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from db.reads.hosts import node_health
from db.reads.servers.servers import COMPUTE
from db.schema import hosts, services


@dataclass(frozen=True)
class Away:
    """A host whose VMs can't be reached."""

    host: str
    answers: bool
    """Whether its agent reports, and reaches the node."""
    forced_down: bool
    """Whether an administrator says that it is down, and that nothing of it runs any more."""

    @property
    def is_lost(self) -> bool:
        """Whether nothing runs there: that is said, and nothing that is seen contradicts it."""
        return self.forced_down and not self.answers


def away(
    connection: sa.Connection, names: Collection[str], up_since: datetime.datetime | None
) -> dict[str, Away]:
    """Return those of these hosts that are away, by name. One query, or none.

    ``up_since``: when an agent that works must have reported; None: silence says nothing now.
    """
    if not names:
        return {}
    answers = _answers(up_since)
    query = (
        sa.select(services.c.host, answers, services.c.forced_down)
        .select_from(node_health.SERVICES)
        .where(
            services.c.binary == COMPUTE,
            services.c.host.in_(sorted(names)),
            sa.or_(services.c.forced_down, sa.not_(answers)),
        )
    )
    found = (Away(host, bool(up), bool(forced)) for host, up, forced in connection.execute(query))
    return {one.host: one for one in found}


def zones_that_work(
    connection: sa.Connection, up_since: datetime.datetime | None
) -> frozenset[str]:
    """Return the availability zones that have a host that works, and is enabled. One query."""
    zone = sa.func.coalesce(services.c.aggregate_zone, services.c.availability_zone)
    query = sa.select(zone).distinct().select_from(node_health.SERVICES)
    query = query.where(*_working(up_since))
    return frozenset(connection.scalars(query))


def clusters_that_work(
    connection: sa.Connection, up_since: datetime.datetime | None
) -> frozenset[tuple[str, str]]:
    """Return (zone, cluster of Proxmox VE) of the hosts that work, and are enabled. One query."""
    zone = sa.func.coalesce(services.c.aggregate_zone, services.c.availability_zone)
    query = sa.select(zone, hosts.c.cluster).distinct().select_from(node_health.SERVICES)
    rows = connection.execute(query.where(hosts.c.cluster.is_not(None), *_working(up_since)))
    return frozenset((one, cluster) for one, cluster in rows)


def _working(up_since: datetime.datetime | None) -> list[sa.ColumnElement[bool]]:
    return [
        services.c.binary == COMPUTE,
        sa.not_(services.c.disabled),
        sa.not_(services.c.forced_down),
        _answers(up_since),
    ]


def zones_of(connection: sa.Connection, names: Collection[str]) -> frozenset[str]:
    """Return the availability zones of these hosts. One query."""
    zone = sa.func.coalesce(services.c.aggregate_zone, services.c.availability_zone)
    query = sa.select(zone).where(services.c.binary == COMPUTE, services.c.host.in_(sorted(names)))
    return frozenset(connection.scalars(query))


def clusters_of(connection: sa.Connection, names: Collection[str]) -> frozenset[str]:
    """Return the clusters of Proxmox VE of these hosts. One query."""
    query = sa.select(hosts.c.cluster).where(hosts.c.host.in_(sorted(names)))
    return frozenset(connection.scalars(query))


def _answers(up_since: datetime.datetime | None) -> sa.ColumnElement[bool]:
    reports: sa.ColumnElement[bool] = sa.true()
    if up_since is not None:
        reports = sa.func.coalesce(services.c.last_seen_at > up_since, sa.false())
    return sa.and_(reports, node_health.REACHED)
