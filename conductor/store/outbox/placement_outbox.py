"""The placement outbox: hosts' aggregates and settings that schedulers and placement must get.

All changes take one lock, so there is one at a time, and each has a version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from db.reads.servers.servers import COMPUTE
from db.schema import (
    aggregate_hosts,
    aggregate_mirrors,
    aggregate_versions,
    aggregates,
    hosts,
    services,
)


def begin(connection: sa.Connection) -> int:
    """Take the lock of all aggregates, until the transaction ends; return the new version."""
    column = aggregate_versions.c.version
    changed = connection.execute(aggregate_versions.update().values(version=column + 1))
    if changed.rowcount == 0:
        connection.execute(aggregate_versions.insert().values(id=1, version=1))
    return int(connection.execute(sa.select(column)).scalar_one())


def set_host(connection: sa.Connection, service_uuid: str) -> None:
    """Record that this transaction changes a service's settings, for schedulers and placement."""
    version = begin(connection)
    host = compute_host(connection, service_uuid)
    if host is not None:
        add(connection, [host], version)


def compute_host(connection: sa.Connection, service_uuid: str) -> str | None:
    """Return the host of a compute service."""
    query = sa.select(services.c.host).where(
        services.c.uuid == service_uuid, services.c.binary == COMPUTE
    )
    return connection.execute(query).scalar()


def add(connection: sa.Connection, names: Sequence[str], version: int) -> None:
    """Put these hosts into the outbox: their aggregates have changed."""
    found = connection.execute(
        sa.select(hosts.c.uuid, hosts.c.host).where(hosts.c.host.in_(names))
    ).all()
    there = aggregate_mirrors.c.provider_uuid.in_([row.uuid for row in found])
    connection.execute(aggregate_mirrors.delete().where(there))
    if found:
        connection.execute(
            aggregate_mirrors.insert(),
            [{"provider_uuid": row.uuid, "host": row.host, "version": version} for row in found],
        )


def mark(connection: sa.Connection, provider_uuid: str, host: str, version: int) -> None:
    """Put one provider into the outbox."""
    mine = aggregate_mirrors.c.provider_uuid == provider_uuid
    values = {"host": host, "version": version}
    if connection.execute(aggregate_mirrors.update().where(mine).values(values)).rowcount == 0:
        connection.execute(
            aggregate_mirrors.insert().values(provider_uuid=provider_uuid, **values)
        )


def worker_of(connection: sa.Connection, provider_uuid: str, host: str) -> str | None:
    """Return the worker of the host with this provider; None if there is no such host.

    Of a host that is back, but whose facts are not yet here, the worker is known by its service.
    """
    query = (
        sa.select(hosts.c.worker)
        .where(hosts.c.uuid == provider_uuid)
        .union_all(
            sa.select(services.c.worker).where(
                services.c.host == host, services.c.binary == COMPUTE
            )
        )
        .limit(1)
    )
    return connection.execute(query).scalar()


@dataclass(frozen=True)
class Pending:
    """What placement must get of one provider."""

    provider_uuid: str
    host: str
    version: int
    uuids: list[str]
    """Its aggregates."""
    disabled: bool | None
    """None: it is no compute host's any more."""


def remove(connection: sa.Connection, one: Pending) -> None:
    """Remove a provider from the outbox: placement has been sent its aggregates as of its version.

    If it has since been changed, or sent by another conductor, an older state may have been sent
    last: then it remains in the outbox.
    """
    if not remove_all(connection, [one]):
        mark(connection, one.provider_uuid, one.host, begin(connection))


def remove_all(connection: sa.Connection, sent: Sequence[Pending]) -> int:
    """Remove providers from the outbox that have the version that placement has.

    Return how many these are. Those that were changed since remain.
    """
    # Hosts that were reported together have one version.
    by_version: dict[int, list[str]] = {}
    for one in sent:
        by_version.setdefault(one.version, []).append(one.provider_uuid)
    columns = aggregate_mirrors.c
    return sum(
        connection.execute(
            aggregate_mirrors.delete().where(
                columns.version == version, columns.provider_uuid.in_(uuids)
            )
        ).rowcount
        for version, uuids in by_version.items()
    )


def pending(connection: sa.Connection, limit: int) -> list[Pending]:
    """Return a limited number of the outbox's entries."""
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
        Pending(
            row.provider_uuid, row.host, row.version, member_of.get(row.host, []), row.disabled
        )
        for row in rows
    ]


def _uuids(connection: sa.Connection, names: Sequence[str]) -> dict[str, list[str]]:
    """Return host → its aggregates, of those that are in any."""
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
