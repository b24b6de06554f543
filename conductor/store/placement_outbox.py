"""What schedulers and placement must be told of hosts: their aggregates, and how they are set.

Who changes any of it holds one lock, so there is one change at a time, and each has a version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from conductor.store.registry import COMPUTE
from db.schema import (
    aggregate_hosts,
    aggregate_mirrors,
    aggregate_versions,
    aggregates,
    hosts,
    services,
)


def begin(connection: sa.Connection) -> int:
    """Take the lock of all aggregates, until the transaction ends; returns the new version."""
    column = aggregate_versions.c.version
    changed = connection.execute(aggregate_versions.update().values(version=column + 1))
    if changed.rowcount == 0:
        connection.execute(aggregate_versions.insert().values(id=1, version=1))
    return int(connection.execute(sa.select(column)).scalar_one())


def set_host(connection: sa.Connection, service_uuid: str) -> None:
    """A service is set otherwise in this transaction: schedulers and placement must be told."""
    version = begin(connection)
    host = compute_host(connection, service_uuid)
    if host is not None:
        mirror(connection, [host], version)


def compute_host(connection: sa.Connection, service_uuid: str) -> str | None:
    """Return the host of a compute service."""
    query = sa.select(services.c.host).where(
        services.c.uuid == service_uuid, services.c.binary == COMPUTE
    )
    return connection.execute(query).scalar()


def mirror(connection: sa.Connection, names: Sequence[str], version: int) -> None:
    """Placement must be told of the aggregates of these hosts."""
    found = connection.execute(
        sa.select(hosts.c.uuid, hosts.c.host).where(hosts.c.host.in_(names))
    ).all()
    for row in found:
        mark(connection, row.uuid, row.host, version)


def mark(connection: sa.Connection, provider_uuid: str, host: str, version: int) -> None:
    """Placement must be told of the aggregates of this one; no two marks have one version."""
    mine = aggregate_mirrors.c.provider_uuid == provider_uuid
    values = {"host": host, "version": version}
    if connection.execute(aggregate_mirrors.update().where(mine).values(values)).rowcount == 0:
        connection.execute(
            aggregate_mirrors.insert().values(provider_uuid=provider_uuid, **values)
        )


def worker_of(connection: sa.Connection, provider_uuid: str) -> str | None:
    """Return the worker of the host that has this provider; None: there is no such host."""
    query = sa.select(hosts.c.worker).where(hosts.c.uuid == provider_uuid)
    return connection.execute(query).scalar()


def told(connection: sa.Connection, provider_uuid: str, host: str, version: int) -> None:
    """Placement has the aggregates that a host had at this version.

    Where it was changed, or told by another one, meanwhile, what was told last may be old: once
    more, then.
    """
    mine = aggregate_mirrors.c.provider_uuid == provider_uuid
    done = connection.execute(
        aggregate_mirrors.delete().where(mine, aggregate_mirrors.c.version == version)
    )
    if done.rowcount == 0:
        mark(connection, provider_uuid, host, begin(connection))


@dataclass(frozen=True)
class Mirrored:
    """What placement must be told of one provider."""

    provider_uuid: str
    host: str
    version: int
    uuids: list[str]
    """Of its aggregates."""
    disabled: bool | None
    """None: it is no compute host's any more."""


def untold(connection: sa.Connection, limit: int) -> list[Mirrored]:
    """Return what placement must be told, of so many providers."""
    columns = aggregate_mirrors.c
    rows = connection.execute(
        sa.select(columns.provider_uuid, columns.host, columns.version, services.c.disabled)
        .outerjoin(hosts, hosts.c.uuid == columns.provider_uuid)
        .outerjoin(services, (services.c.host == hosts.c.host) & (services.c.binary == COMPUTE))
        .order_by(columns.version)
        .limit(limit)
    ).all()
    member_of = _uuids(connection, [row.host for row in rows])
    return [
        Mirrored(
            row.provider_uuid, row.host, row.version, member_of.get(row.host, []), row.disabled
        )
        for row in rows
    ]


def _uuids(connection: sa.Connection, names: Sequence[str]) -> dict[str, list[str]]:
    """Host → its aggregates, of those that are in any."""
    query = (
        sa.select(aggregate_hosts.c.host, aggregates.c.uuid)
        .join(aggregates, aggregate_hosts.c.aggregate_id == aggregates.c.id)
        .where(aggregate_hosts.c.host.in_(names))
        .order_by(aggregates.c.uuid)
    )
    found: dict[str, list[str]] = {}
    for host, uuid in connection.execute(query) if names else ():
        found.setdefault(host, []).append(uuid)
    return found
