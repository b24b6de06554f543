"""Writes of host aggregates. All take one lock, so there is one change at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa

from common import clock, ids
from common.errors import Conflict, HostNotFound, Invalid, NotFound
from common.resources.aggregates import ZONE
from conductor.store.outbox.placement_outbox import add as add_to_outbox
from conductor.store.outbox.placement_outbox import begin, compute_host
from db.reads.hosts import aggregates as reads
from db.reads.hosts.aggregates import Aggregate
from db.reads.servers.servers import COMPUTE
from db.schema import aggregate_hosts, aggregates, servers, services

_MOVE = (
    "Changing the AZ of an existing instance is not supported by this action. Move the instances "
    "away from this host then try again. If you need to move the instances between AZs then you "
    "can use shelve_offload and unshelve to achieve this."
)


def get(connection: sa.Connection, number: int) -> Aggregate:
    """Return an aggregate. Raises NotFound."""
    found = reads.find(connection, number)
    if found is None:
        raise NotFound(f"Aggregate {number} could not be found.")
    return found


def create(connection: sa.Connection, name: str, zone: str | None) -> int:
    """Create an aggregate; return its id. Raises Conflict when the name is taken."""
    begin(connection)
    _must_be_free(connection, name)
    made = connection.execute(
        aggregates.insert().values(
            uuid=ids.new_uuid(),
            name=name,
            meta={ZONE: zone} if zone else {},
            created_at=clock.utcnow(),
        )
    )
    return int(made.inserted_primary_key[0])  # type: ignore[index]


def _must_be_free(connection: sa.Connection, name: str) -> None:
    if connection.execute(sa.select(aggregates.c.id).where(aggregates.c.name == name)).first():
        raise Conflict(f"Aggregate {name} already exists.")


def update(
    connection: sa.Connection, number: int, name: str | None, metadata: Mapping[str, str | None]
) -> None:
    """Rename it, and make it a zone (``availability_zone`` counts as metadata).

    Raises NotFound, Conflict for a name that is taken, Invalid for an impossible zone.
    """
    begin(connection)
    aggregate = get(connection, number)
    if name is not None and name != aggregate.name:
        _must_be_free(connection, name)
    _change(connection, aggregate, name, metadata, "Cannot update aggregate")


def set_metadata(
    connection: sa.Connection, number: int, metadata: Mapping[str, str | None]
) -> None:
    """Merge metadata; None drops a key. Raises NotFound, Invalid for an impossible zone."""
    begin(connection)
    aggregate = get(connection, number)
    _change(connection, aggregate, None, metadata, "Cannot update metadata of aggregate")


def _change(
    connection: sa.Connection,
    aggregate: Aggregate,
    name: str | None,
    metadata: Mapping[str, str | None],
    refusal: str,
) -> None:
    if ZONE in metadata:
        reason = _zone_conflict(connection, aggregate, name, metadata[ZONE])
        if reason is not None:
            raise Invalid(f"{refusal} {aggregate.id}. Reason: {reason}.")
    merged = {**aggregate.metadata, **metadata}
    kept = {key: value for key, value in merged.items() if value is not None}
    connection.execute(
        aggregates.update()
        .where(aggregates.c.id == aggregate.id)
        .values(name=name or aggregate.name, meta=kept, updated_at=clock.utcnow())
    )
    if ZONE in metadata:
        _settle_zones(connection, aggregate.hosts)


def _zone_conflict(
    connection: sa.Connection, aggregate: Aggregate, name: str | None, zone: str | None
) -> str | None:
    """Return why the hosts of an aggregate can't be in this zone, in Nova's words."""
    if not zone:
        shown = name or aggregate.name
        return f"Aggregate {shown} does not support empty named availability zone"
    _lock_hosts(connection, aggregate.hosts)
    others = _other_zones(connection, aggregate, aggregate.hosts, zone)
    if others:
        return f"One or more hosts already in availability zone(s) {others}"
    if zone != aggregate.zone and _servers_on(connection, aggregate.hosts):
        return "One or more hosts contain instances in this zone"
    return None


def _other_zones(
    connection: sa.Connection, aggregate: Aggregate, names: Iterable[str], zone: str
) -> list[str]:
    """Return the other zones that these hosts get from other aggregates."""
    wanted = set(names)
    return [
        other.zone
        for other in reads.list_aggregates(connection)
        if other.id != aggregate.id
        and other.zone not in (None, zone)
        and wanted.intersection(other.hosts)
    ]


def _servers_on(connection: sa.Connection, names: Sequence[str]) -> int:
    query = sa.select(sa.func.count()).where(
        servers.c.host.in_(names), servers.c.deleted_at.is_(None)
    )
    return int(connection.execute(query).scalar_one())


def delete(connection: sa.Connection, number: int) -> None:
    """Delete an aggregate. Raises NotFound; Invalid while it has hosts."""
    begin(connection)
    aggregate = get(connection, number)
    if aggregate.hosts:
        raise Invalid(
            f"Cannot remove host from aggregate {number}. Reason: Host aggregate is not empty."
        )
    connection.execute(aggregates.delete().where(aggregates.c.id == number))


def add_host(connection: sa.Connection, number: int, host: str) -> None:
    """Add a host. Raises NotFound, HostNotFound; Conflict if it can't be added, or is a member."""
    version = begin(connection)
    zone_before = _lock_host(connection, host)
    aggregate = get(connection, number)
    if aggregate.zone is not None:
        reason = _move_conflict(connection, aggregate, host, zone_before)
        if reason is not None:
            raise Conflict(f"Cannot add host to aggregate {number}. Reason: {reason}.")
    if host in aggregate.hosts:
        raise Conflict(f"Aggregate {number} already has host {host}.")
    connection.execute(aggregate_hosts.insert().values(aggregate_id=number, host=host))
    _settle_zones(connection, [host])
    add_to_outbox(connection, [host], version)


def _move_conflict(
    connection: sa.Connection, aggregate: Aggregate, host: str, zone_before: str
) -> str | None:
    zone = str(aggregate.zone)
    others = _other_zones(connection, aggregate, [host], zone)
    if others:
        return f"One or more hosts already in availability zone(s) {others}"
    count = _servers_on(connection, [host])
    if zone_before != zone and count:
        return (
            "The host cannot be added to the aggregate as the availability zone of the host "
            f"would change from '{zone_before}' to '{zone}' but the host already has {count} "
            f"instance(s). {_MOVE}".rstrip(".")
        )
    return None


def remove_host(connection: sa.Connection, number: int, host: str) -> None:
    """Remove a host. Raises NotFound, HostNotFound; Conflict if servers would change zone."""
    version = begin(connection)
    zone_before = _lock_host(connection, host)
    get(connection, number)
    mine = (aggregate_hosts.c.aggregate_id == number) & (aggregate_hosts.c.host == host)
    if connection.execute(aggregate_hosts.delete().where(mine)).rowcount == 0:
        raise NotFound(f"Aggregate {number} has no host {host}.")
    _settle_zones(connection, [host])
    zone = _lock_host(connection, host)
    count = _servers_on(connection, [host]) if zone != zone_before else 0
    if count:
        raise Conflict(
            f"Cannot remove host from aggregate {number}. Reason: The host cannot be removed "
            "from the aggregate as the availability zone of the host would change from "
            f"'{zone_before}' to '{zone}' but the host already has {count} instance(s). {_MOVE}"
        )
    add_to_outbox(connection, [host], version)


def delete_service(connection: sa.Connection, service_uuid: str) -> None:
    """Remove the host of a deleted compute service from every aggregate."""
    version = begin(connection)
    host = compute_host(connection, service_uuid)
    if host is not None:
        add_to_outbox(connection, [host], version)
        connection.execute(aggregate_hosts.delete().where(aggregate_hosts.c.host == host))


# --- zones of hosts


def _lock_host(connection: sa.Connection, host: str) -> str:
    """Return the zone of a compute host, locked for new servers. Raises HostNotFound."""
    row = connection.execute(
        sa.select(services.c.aggregate_zone, services.c.availability_zone)
        .where(services.c.binary == COMPUTE, services.c.host == host)
        .with_for_update()
    ).first()
    if row is None:
        raise HostNotFound(f"Compute host {host} could not be found.", host=host)
    return str(row.aggregate_zone or row.availability_zone)


def _lock_hosts(connection: sa.Connection, names: Sequence[str]) -> None:
    """Lock these hosts for new servers until the transaction ends."""
    connection.execute(
        sa.select(services.c.id)
        .where(services.c.binary == COMPUTE, services.c.host.in_(names))
        .order_by(services.c.id)
        .with_for_update()
    ).all()


def _settle_zones(connection: sa.Connection, names: Sequence[str]) -> None:
    """Store the zone that these hosts get from their aggregates, if any."""
    zones: dict[str | None, list[str]] = {}
    known = reads.list_aggregates(connection)
    for name in names:
        mine = (one.zone for one in known if one.zone is not None and name in one.hosts)
        zones.setdefault(next(mine, None), []).append(name)
    for zone, hosts_in_it in zones.items():
        connection.execute(
            services.update()
            .where(services.c.binary == COMPUTE, services.c.host.in_(hosts_in_it))
            .values(aggregate_zone=zone)
        )
