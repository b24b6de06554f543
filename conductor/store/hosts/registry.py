"""Services, hosts, clusters and images, as heartbeats report them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from common import clock, codec, ids
from common.errors import Conflict, HostNotFound
from common.messages.facts import ClusterFacts, Heartbeat, HostFacts
from common.messages.queues import Queue, Queues
from common.resources import vnets
from conductor.store.images import images as images_store
from conductor.store.networks import cluster_vnets, networks
from conductor.store.outbox import notification_payloads
from conductor.store.servers import vmids
from db.reads.hosts import clusters as cluster_reads
from db.reads.hosts import services as service_reads
from db.reads.servers import servers as server_reads
from db.schema import clusters, hosts, images, servers, services

COMPUTE = server_reads.COMPUTE
#: the binary of rows about agents' workers, beside those of the hosts
AGENT = service_reads.AGENT
#: zone of services that are not on a compute host (as in Nova)
INTERNAL_ZONE = "internal"


def seen(
    connection: sa.Connection,
    binary: str,
    names: Sequence[str],
    *,
    worker: str,
    zone: str = INTERNAL_ZONE,
    version: str = "",
    queues: Queues | None = None,
) -> frozenset[str]:
    """Record signs of life of these services; register and return unknown ones.

    ``queues`` are those of compute hosts. Mostly one statement.
    """
    now = clock.utcnow()
    mine = (services.c.binary == binary) & services.c.host.in_(list(names))
    known = connection.execute(
        services.update()
        .where(mine)
        .values(last_seen_at=now, worker=worker, version=version, queues=_queues(queues))
    )
    if known.rowcount >= len(names):
        return frozenset()
    there = set(connection.execute(sa.select(services.c.host).where(mine)).scalars())
    new = frozenset(names) - there
    if not new:
        return new
    rows = [
        {
            "uuid": ids.named("service", f"{binary}/{name}"),
            "binary": binary,
            "host": name,
            "worker": worker,
            "availability_zone": zone,
            "version": version,
            "created_at": now,
            "last_seen_at": now,
            **({} if queues is None else {"queues": _plain(queues.of_host(name))}),
        }
        for name in sorted(new)
    ]
    connection.execute(services.insert(), rows)
    notification_payloads.new_services(connection, rows)
    return new


def _queues(queues: Queues | None) -> sa.ColumnElement[Any]:
    """Return the value of the column for each host, within one statement."""
    if queues is None:
        return sa.null()
    kind = services.c.queues.type
    idle = sa.literal(_plain(queues.idle), kind)
    if not queues.busy:
        return idle
    busy = {host: sa.literal(_plain(found), kind) for host, found in queues.busy.items()}
    return sa.case(busy, value=services.c.host, else_=idle)


def _plain(queues: Sequence[Queue]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(queue) for queue in queues]


def silent(connection: sa.Connection, binary: str, seconds: float) -> list[str]:
    """Return hosts of a binary without a sign of life for that long, or forced down.

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


def carried(connection: sa.Connection) -> dict[str, tuple[str | None, str | None, Any]]:
    """Return {compute host: its worker, cluster, and when it was last seen}."""
    rows = connection.execute(
        sa.select(services.c.host, services.c.worker, hosts.c.cluster, services.c.last_seen_at)
        .outerjoin_from(services, hosts, hosts.c.host == services.c.host)
        .where(services.c.binary == COMPUTE)
    )
    return {row.host: (row.worker, row.cluster, row.last_seen_at) for row in rows}


def take(
    connection: sa.Connection,
    heartbeat: Heartbeat,
    is_project_s: Callable[[str], bool] = lambda _: False,
) -> frozenset[str]:
    """Store all of a worker's heartbeat; return hosts that the record didn't have (any more).

    ``is_project_s``: whether a bridge is a vnet that was made for a project, which becomes no
    network of all of them.
    These are hosts that are only named, and new ones, whose providers may be gone.
    """
    for cluster in heartbeat.clusters:
        _cluster(connection, cluster)
        images_store.take(connection, cluster)
    if heartbeat.left:
        heartbeat = _without_deleted(connection, heartbeat)
    zones = {facts.host: facts.availability_zone for facts in heartbeat.facts}
    new: frozenset[str] = frozenset()
    if heartbeat.hosts:
        new = seen(
            connection,
            COMPUTE,
            heartbeat.hosts,
            worker=heartbeat.worker,
            zone=next(iter(zones.values()), "nova"),
            version=heartbeat.version,
            queues=heartbeat.queues,
        )
    _zones(connection, zones)
    worker = heartbeat.worker
    back = {facts.host for facts in heartbeat.facts if _host(connection, facts, worker)}
    bridges = {bridge for facts in heartbeat.facts for bridge in facts.bridges}
    bridges = {bridge for bridge in bridges if not is_project_s(bridge)}
    for bridge in sorted(bridges - _of_clouds(connection, bridges)):
        networks.ensure_network(connection, bridge)
    return (new - zones.keys()) | back


class NodeHealth(NamedTuple):
    """How the node of a host was, as last reported."""

    reached: bool
    healthy: bool


def health(connection: sa.Connection, names: Collection[str]) -> dict[str, NodeHealth]:
    """Return how the nodes of these hosts were. One query; none for no host."""
    if not names:
        return {}
    flags = [hosts.c.facts[name].as_boolean() for name in ("online", "healthy")]
    query = sa.select(hosts.c.host, *flags).where(hosts.c.host.in_(sorted(names)))
    return {
        name: NodeHealth(online is not False, healthy is not False)
        for name, online, healthy in connection.execute(query)
    }


def silent_of(connection: sa.Connection, names: Collection[str], seconds: float) -> set[str]:
    """Return those of these hosts whose agents have not reported for so long. One query."""
    if not names or seconds == math.inf:
        return set()
    mine = (services.c.binary == COMPUTE) & services.c.host.in_(sorted(names))
    late = services.c.last_seen_at < clock.after(-seconds)
    return set(connection.scalars(sa.select(services.c.host).where(mine, late)))


def _without_deleted(connection: sa.Connection, heartbeat: Heartbeat) -> Heartbeat:
    """Return the heartbeat without hosts whose nodes are gone and whose services are deleted."""
    mine = (services.c.binary == COMPUTE) & services.c.host.in_(heartbeat.left)
    there = set(connection.scalars(sa.select(services.c.host).where(mine)))
    gone = set(heartbeat.left) - there
    return dataclasses.replace(
        heartbeat,
        hosts=tuple(host for host in heartbeat.hosts if host not in gone),
        facts=tuple(facts for facts in heartbeat.facts if facts.host not in gone),
    )


def _of_clouds(connection: sa.Connection, bridges: Iterable[str]) -> frozenset[str]:
    """Return the vnets among these that some cloud made for a network: perhaps another one's,
    whose projects share it with nobody."""
    if not any(map(vnets.is_ours, bridges)):
        return frozenset()
    return cluster_vnets.of_networks(connection)


def unfiltered(connection: sa.Connection) -> dict[str, str]:
    """Return why each cluster that has hosts can't filter its servers' ports; empty: it can."""
    return cluster_reads.unfiltered(connection)


def without_facts(connection: sa.Connection, seconds: float) -> list[str]:
    """Return workers that reported in that time and named hosts without facts."""
    query = (
        sa.select(services.c.worker)
        .distinct()
        .outerjoin_from(services, hosts, hosts.c.host == services.c.host)
        .where(
            services.c.binary == COMPUTE,
            services.c.last_seen_at >= clock.after(-seconds),
            services.c.worker.is_not(None),
            hosts.c.host.is_(None),
        )
    )
    return sorted(connection.execute(query).scalars())


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
    plain = codec.loads(codec.dumps(dataclasses.replace(facts, images=())))
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


def _host(connection: sa.Connection, facts: HostFacts, worker: str) -> bool:
    """Store a host's facts, and who carries its agent; return whether it is new."""
    now = clock.utcnow()
    values: dict[str, Any] = {
        "cluster": facts.cluster,
        "node": facts.node,
        "worker": worker,
        "facts": codec.loads(codec.dumps(facts)),
        "updated_at": now,
    }
    mine = hosts.c.host == facts.host
    if connection.execute(hosts.update().where(mine).values(**values)).rowcount:
        return False
    connection.execute(
        hosts.insert().values(host=facts.host, uuid=facts.uuid, created_at=now, **values)
    )
    return True


_ROWS = (
    sa.select(
        hosts.c.host,
        hosts.c.facts,
        hosts.c.worker,
        services.c.aggregate_zone,
        services.c.disabled,
        services.c.forced_down,
    )
    .join(services, (services.c.host == hosts.c.host) & (services.c.binary == COMPUTE))
    .order_by(hosts.c.host)
)
_ROW = _ROWS.where(hosts.c.host == sa.bindparam("name"))
# Where the database has such a lock, it doesn't delay signs of life.
_LOCKED = _ROWS.with_for_update(read=True, key_share=True, of=services)
_ROW_LOCKED = _LOCKED.where(hosts.c.host == sa.bindparam("name"))
_ROWS_LOCKED = _LOCKED.where(hosts.c.host.in_(sa.bindparam("names", expanding=True)))


def host(connection: sa.Connection, name: str, *, lock: bool = False) -> tuple[HostFacts, str]:
    """Return (facts, worker) of a host, with its zone from aggregates. Raises HostNotFound.

    With ``lock`` it remains in that zone until the transaction ends.
    """
    return _read(_row(connection, name, lock=lock))


def chosen(
    connection: sa.Connection, names: Collection[str]
) -> dict[str, tuple[HostFacts, str] | str]:
    """Return ``host`` of each, locked, for builds that name them; or why it can't be used."""
    rows = connection.execute(_ROWS_LOCKED, {"names": sorted(names)}).all()
    gone = dict.fromkeys(names, "it is no compute host any more")
    return {**gone, **{row.host: _usable(row) for row in rows}}


def _usable(row: Any) -> tuple[HostFacts, str] | str:
    if row.forced_down:
        return "forced down by an administrator"
    return "disabled by an administrator" if row.disabled else _read(row)


def _row(connection: sa.Connection, name: str, *, lock: bool) -> Any:
    row = connection.execute(_ROW_LOCKED if lock else _ROW, {"name": name}).first()
    if row is None:
        raise HostNotFound(f"Compute host {name} could not be found.", host=name)
    return row


def _read(row: Any) -> tuple[HostFacts, str]:
    facts = codec.load(HostFacts, row.facts)
    if row.aggregate_zone is not None:
        facts = dataclasses.replace(facts, availability_zone=row.aggregate_zone)
    return facts, row.worker


_CARRIER = (
    sa.select(hosts.c.worker, services.c.forced_down, services.c.last_seen_at)
    .outerjoin(services, (services.c.host == hosts.c.host) & (services.c.binary == COMPUTE))
    .where(hosts.c.host == sa.bindparam("name"))
)


def worker_of(connection: sa.Connection, name: str, seconds: float) -> str | None:
    """Return the worker of a host; None if it is `silent`, or there is no such host."""
    row = connection.execute(_CARRIER, {"name": name}).first()
    if row is None or row.forced_down:
        return None
    if row.forced_down is not None and seconds < math.inf:
        seen = row.last_seen_at
        if seen is None or seen < clock.after(-seconds):
            return None
    return str(row.worker)


def exists(connection: sa.Connection, name: str) -> bool:
    """Return whether there is such a host."""
    return connection.execute(_CARRIER, {"name": name}).first() is not None


_WORKERS = sa.select(hosts.c.host, hosts.c.worker).where(
    hosts.c.host.in_(sa.bindparam("names", expanding=True))
)


def workers(connection: sa.Connection, names: Iterable[str]) -> dict[str, str]:
    """Return the worker of each of these hosts."""
    return dict(connection.execute(_WORKERS, {"names": list(names)}).all())


def hosts_in(connection: sa.Connection, cluster: str) -> tuple[str, ...]:
    """Return all hosts of a cluster, sorted."""
    query = sa.select(hosts.c.host).where(hosts.c.cluster == cluster).order_by(hosts.c.host)
    return tuple(connection.execute(query).scalars())


def hosts_outside(connection: sa.Connection, cluster: str) -> bool:
    """Return whether any other cluster has hosts."""
    query = sa.select(hosts.c.host).where(hosts.c.cluster != cluster).limit(1)
    return connection.execute(query).first() is not None


_IMAGE = sa.select(images).where(images.c.id == sa.bindparam("id"))


def image_location(connection: sa.Connection, image_id: str, cluster: str) -> Any | None:
    """Return the image's row, if that cluster stores the image."""
    row = connection.execute(_IMAGE, {"id": image_id}).first()
    return row if row is not None and cluster in row.locations else None


def is_local_cd(connection: sa.Connection, image_id: str, host: str) -> bool:
    """Return whether an image is a CD that lies on storage of a host's own. One query."""
    query = (
        sa.select(images.c.locations, hosts.c.cluster, hosts.c.facts["storages"])
        .join(hosts, hosts.c.host == host)
        .where(images.c.id == image_id, images.c.disk_format == "iso")
    )
    found = connection.execute(query).first()
    if found is None or found.cluster not in found.locations:
        return False
    name = found.locations[found.cluster].partition(":")[0]
    return any(one["name"] == name and not one["shared"] for one in found[2] or ())


def host_settings(connection: sa.Connection) -> list[tuple[str, bool, bool]]:
    """Return (host, disabled, forced down) of every compute host, by one query."""
    query = sa.select(services.c.host, services.c.disabled, services.c.forced_down).where(
        services.c.binary == COMPUTE
    )
    return [(row.host, row.disabled, row.forced_down) for row in connection.execute(query)]


def update_service(connection: sa.Connection, service_uuid: str, changes: dict[str, Any]) -> None:
    """Change a service. Raises HostNotFound."""
    changed = connection.execute(
        services.update()
        .where(services.c.uuid == service_uuid)
        .values(updated_at=clock.utcnow(), **changes)
    )
    if changed.rowcount == 0:
        raise HostNotFound(f"Service {service_uuid} could not be found.")


def disable(connection: sa.Connection, host: str, reason: str) -> None:
    """Disable a host for new servers; a disabled host's reason is not changed."""
    connection.execute(
        services.update()
        .where(services.c.binary == COMPUTE, services.c.host == host, ~services.c.disabled)
        .values(updated_at=clock.utcnow(), disabled=True, disabled_reason=reason)
    )


def pins(connection: sa.Connection, names: Iterable[str]) -> dict[str, Mapping[str, str]]:
    """Return what pins VMs to each of these hosts: ``HostFacts.pinned``. One query."""
    query = sa.select(hosts.c.host, hosts.c.facts["pinned"]).where(hosts.c.host.in_(list(names)))
    return {name: found or {} for name, found in connection.execute(query)}


def delete_service(connection: sa.Connection, service_uuid: str) -> tuple[str, str]:
    """Delete a service and, of a compute service, its host; return (binary, host).

    Raises HostNotFound; Conflict while servers are on the host.
    """
    row = connection.execute(
        sa.select(services.c.binary, services.c.host)
        .where(services.c.uuid == service_uuid)
        .with_for_update()
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


#: seconds of silence after which a process may count as replaced
REPLACED_SECONDS = 120.0

_SIGNS = (
    services.c.updated_at,
    sa.func.coalesce(services.c.last_seen_at, services.c.created_at).label("last"),
)


def delete_replaced(connection: sa.Connection) -> list[str]:
    """Delete the rows of conductors and schedulers that others have replaced; return their names.

    Such a one is silent, and after its last sign of life one of its kind began under a new name,
    as a container does that is made again. A process that nobody replaced remains, as do those
    that an administrator disabled or forced down.
    """
    columns = services.c
    rows = connection.execute(
        sa.select(columns.id, columns.binary, columns.host, columns.created_at, *_SIGNS)
        .where(columns.binary.not_in((COMPUTE, AGENT)), ~columns.disabled, ~columns.forced_down)
        .order_by(columns.created_at, columns.id)
    ).all()
    before = clock.after(-REPLACED_SECONDS)
    silent = sorted((row for row in rows if row.last < before), key=lambda row: row.last)
    # A row that was changed, as below, has replaced another one already.
    new = [row for row in rows if row.last >= before and row.updated_at is None]
    replaced, by = [], []
    for row in silent:
        follower = next(
            (one for one in new if one.binary == row.binary and one.created_at > row.last), None
        )
        if follower is not None:
            new.remove(follower)
            replaced.append(row)
            by.append(follower.id)
    if replaced:
        connection.execute(services.delete().where(columns.id.in_([row.id for row in replaced])))
        connection.execute(
            services.update().where(columns.id.in_(by)).values(updated_at=clock.utcnow())
        )
    return [row.host for row in replaced]
