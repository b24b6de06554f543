"""Services, hosts, clusters and images: what is told by heartbeats."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from common import clock, ids, wire
from common.errors import Conflict, HostNotFound
from common.messages.facts import ClusterFacts, Heartbeat, HostFacts, ImageFacts
from conductor.store import networks, vmids
from db.schema import clusters, hosts, images, servers, services

COMPUTE = "nova-compute"
#: zone of the services that are not on a compute host (as Nova shows it)
INTERNAL_ZONE = "internal"


def seen(
    connection: sa.Connection,
    binary: str,
    names: Sequence[str],
    *,
    worker: str,
    zone: str = INTERNAL_ZONE,
    version: str = "",
) -> None:
    """These services gave a sign of life; unknown ones are registered. One statement mostly."""
    now = clock.utcnow()
    mine = (services.c.binary == binary) & services.c.host.in_(list(names))
    known = connection.execute(
        services.update().where(mine).values(last_seen_at=now, worker=worker, version=version)
    )
    if known.rowcount >= len(names):
        return
    there = set(connection.execute(sa.select(services.c.host).where(mine)).scalars())
    connection.execute(
        services.insert(),
        [
            {
                "uuid": ids.named("service", f"{binary}/{name}"),
                "binary": binary,
                "host": name,
                "worker": worker,
                "availability_zone": zone,
                "version": version,
                "created_at": now,
                "last_seen_at": now,
            }
            for name in names
            if name not in there
        ],
    )


def silent(connection: sa.Connection, binary: str, seconds: float) -> list[str]:
    """Hosts of a binary that gave no sign of life for that long, or are forced down.

    With ``inf`` seconds only the latter.
    """
    late: sa.ColumnElement[bool] = sa.false()
    if seconds < math.inf:
        before = clock.after(-seconds)
        late = services.c.last_seen_at.is_(None) | (services.c.last_seen_at < before)
    return list(
        connection.execute(
            sa.select(services.c.host).where(
                services.c.binary == binary, late | services.c.forced_down
            )
        ).scalars()
    )


def take(connection: sa.Connection, heartbeat: Heartbeat) -> None:
    """Take over all that a worker's heartbeat tells."""
    for cluster in heartbeat.clusters:
        _cluster(connection, cluster)
        _images(connection, cluster)
    zones = {facts.host: facts.availability_zone for facts in heartbeat.facts}
    if heartbeat.hosts:
        seen(
            connection,
            COMPUTE,
            heartbeat.hosts,
            worker=heartbeat.worker,
            zone=next(iter(zones.values()), "nova"),
            version=heartbeat.version,
        )
    _zones(connection, zones)
    for facts in heartbeat.facts:
        _host(connection, facts)
    for bridge in sorted({bridge for facts in heartbeat.facts for bridge in facts.bridges}):
        networks.ensure_network(connection, bridge)


def _zones(connection: sa.Connection, zones: dict[str, str]) -> None:
    by_zone: dict[str, list[str]] = {}
    for host, zone in zones.items():
        by_zone.setdefault(zone, []).append(host)
    for zone, names in by_zone.items():
        connection.execute(
            services.update()
            .where(
                services.c.binary == COMPUTE,
                services.c.host.in_(names),
                services.c.availability_zone != zone,
            )
            .values(availability_zone=zone)
        )


def _cluster(connection: sa.Connection, facts: ClusterFacts) -> None:
    plain = wire.loads(wire.dumps(dataclasses.replace(facts, images=())))
    now = clock.utcnow()
    changed = connection.execute(
        clusters.update()
        .where(clusters.c.cluster == facts.cluster)
        .values(facts=plain, updated_at=now)
    )
    if changed.rowcount == 0:
        connection.execute(
            clusters.insert().values(cluster=facts.cluster, facts=plain, updated_at=now)
        )
    if facts.vmid_high:
        vmids.set_band(connection, facts.cluster, facts.vmid_low, facts.vmid_high)


def _host(connection: sa.Connection, facts: HostFacts) -> None:
    now = clock.utcnow()
    values: dict[str, Any] = {
        "cluster": facts.cluster,
        "node": facts.node,
        "worker": facts.worker,
        "facts": wire.loads(wire.dumps(facts)),
        "updated_at": now,
    }
    mine = hosts.c.host == facts.host
    if connection.execute(hosts.update().where(mine).values(**values)).rowcount == 0:
        connection.execute(
            hosts.insert().values(host=facts.host, uuid=facts.uuid, created_at=now, **values)
        )


def _images(connection: sa.Connection, cluster: ClusterFacts) -> None:
    """The cluster's images are these: new ones appear, those that nobody has any more go."""
    # An image of several clusters is one row, which their heartbeats take turns to change.
    query = sa.select(images).order_by(images.c.id).with_for_update()
    known = {row.id: row for row in connection.execute(query)}
    told = {image.id: image for image in cluster.images}
    for image in told.values():
        row = known.get(image.id)
        if row is None:
            connection.execute(images.insert().values(**_image_row(image, cluster.cluster)))
            continue
        if image.virtual_size_bytes and row.virtual_size_bytes != image.virtual_size_bytes:
            _resize(connection, image)
        if row.locations.get(cluster.cluster) != image.volid:
            _relocate(connection, image.id, {**row.locations, cluster.cluster: image.volid})
    for image_id, row in known.items():
        if cluster.cluster in row.locations and image_id not in told:
            rest = {name: at for name, at in row.locations.items() if name != cluster.cluster}
            if rest:
                _relocate(connection, image_id, rest)
            else:
                connection.execute(images.delete().where(images.c.id == image_id))


def _image_row(image: ImageFacts, cluster: str) -> dict[str, Any]:
    now = clock.utcnow()
    return {
        "id": image.id,
        "name": image.name,
        "status": "active",
        "size_bytes": image.size_bytes,
        "virtual_size_bytes": image.virtual_size_bytes,
        "disk_format": image.disk_format,
        "min_disk_gib": _gib(image),
        "properties": {},
        "locations": {cluster: image.volid},
        "created_at": image.created_at or now,
        "updated_at": now,
    }


def _gib(image: ImageFacts) -> int:
    """What the image's disk needs at least: a smaller flavor is refused."""
    return -(-(image.virtual_size_bytes or 0) // 2**30)


def _resize(connection: sa.Connection, image: ImageFacts) -> None:
    connection.execute(
        images.update()
        .where(images.c.id == image.id)
        .values(
            size_bytes=image.size_bytes,
            virtual_size_bytes=image.virtual_size_bytes,
            min_disk_gib=_gib(image),
            updated_at=clock.utcnow(),
        )
    )


def _relocate(connection: sa.Connection, image_id: str, locations: dict[str, str]) -> None:
    connection.execute(
        images.update()
        .where(images.c.id == image_id)
        .values(locations=locations, updated_at=clock.utcnow())
    )


def host(connection: sa.Connection, name: str, *, lock: bool = False) -> tuple[HostFacts, str]:
    """(facts, worker) of a host, in the zone that its aggregates make. Raises HostNotFound.

    With ``lock`` it stays in that zone until the transaction ends.
    """
    query = (
        sa.select(hosts.c.facts, hosts.c.worker, services.c.aggregate_zone)
        .join(services, (services.c.host == hosts.c.host) & (services.c.binary == COMPUTE))
        .where(hosts.c.host == name)
    )
    if lock:
        # Signs of life are not kept waiting by it, where the database knows such a lock.
        query = query.with_for_update(read=True, key_share=True, of=services)
    row = connection.execute(query).first()
    if row is None:
        raise HostNotFound(f"Compute host {name} could not be found.", host=name)
    facts = wire.load(HostFacts, row.facts)
    if row.aggregate_zone is not None:
        facts = dataclasses.replace(facts, availability_zone=row.aggregate_zone)
    return facts, row.worker


def workers(connection: sa.Connection, names: Iterable[str]) -> dict[str, str]:
    """Worker of each of these hosts."""
    rows = connection.execute(
        sa.select(hosts.c.host, hosts.c.worker).where(hosts.c.host.in_(list(names)))
    )
    return dict(rows.all())


def hosts_in(connection: sa.Connection, cluster: str) -> tuple[str, ...]:
    """All hosts of a cluster, sorted."""
    query = sa.select(hosts.c.host).where(hosts.c.cluster == cluster).order_by(hosts.c.host)
    return tuple(connection.execute(query).scalars())


def hosts_outside(connection: sa.Connection, cluster: str) -> bool:
    """Whether any other cluster has hosts."""
    query = sa.select(hosts.c.host).where(hosts.c.cluster != cluster).limit(1)
    return connection.execute(query).first() is not None


def image_location(connection: sa.Connection, image_id: str, cluster: str) -> Any | None:
    """The image's row, if that cluster has it."""
    row = connection.execute(sa.select(images).where(images.c.id == image_id)).first()
    return row if row is not None and cluster in row.locations else None


def update_service(
    connection: sa.Connection, service_uuid: str, changes: dict[str, Any]
) -> tuple[str, str, bool]:
    """Change a service; returns (binary, host, whether it is disabled). Raises HostNotFound."""
    mine = services.c.uuid == service_uuid
    connection.execute(services.update().where(mine).values(updated_at=clock.utcnow(), **changes))
    row = connection.execute(
        sa.select(services.c.binary, services.c.host, services.c.disabled).where(mine)
    ).first()
    if row is None:
        raise HostNotFound(f"Service {service_uuid} could not be found.")
    return row.binary, row.host, row.disabled


def delete_service(connection: sa.Connection, service_uuid: str) -> tuple[str, str]:
    """Forget a service and, of a compute service, its host. Returns (binary, host).

    Raises HostNotFound; Conflict while servers are on the host.
    """
    row = connection.execute(
        sa.select(services.c.binary, services.c.host).where(services.c.uuid == service_uuid)
    ).first()
    if row is None:
        raise HostNotFound(f"Service {service_uuid} could not be found.")
    if row.binary == COMPUTE:
        there = connection.execute(
            sa.select(servers.c.id)
            .where(servers.c.host == row.host, servers.c.deleted_at.is_(None))
            .limit(1)
        ).first()
        if there is not None:
            raise Conflict("Unable to delete compute service that is hosting instances.")
        connection.execute(hosts.delete().where(hosts.c.host == row.host))
    connection.execute(services.delete().where(services.c.uuid == service_uuid))
    return row.binary, row.host
