"""Compute hosts: their facts, their service, and what their servers use."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import capacity, codec, host_traits, more_hosts
from common.errors import Invalid
from common.messages.facts import HostFacts
from common.more_hosts import Kind
from common.moving import Situation
from common.near_room import HostRoom
from db import schema
from db.reads import keyset
from db.reads.hosts import node_health, services
from db.reads.servers.servers import COMPUTE

_HOSTS = schema.hosts.c
_SERVICES = schema.services.c
_SERVERS = schema.servers.c

#: resource class → the column of servers that has its amount
SIZES: Mapping[str, str] = {"VCPU": "vcpus", "MEMORY_MB": "memory_mib", "DISK_GB": "disk_gib"}


def situation(connection: sa.Connection, server_uuid: str) -> Situation | None:
    """Return what decides whether a server can be moved; None: it is gone. One query."""
    row = connection.execute(
        sa.select(
            *(_SERVERS.vm_state, _SERVERS.vmid, _SERVERS.flavor, _SERVERS.held),
            _HOSTS.facts["pinned"].label("pinned"),
        )
        .outerjoin_from(schema.servers, schema.hosts, _HOSTS.host == _SERVERS.host)
        .where(_SERVERS.uuid == server_uuid, _SERVERS.deleted_at.is_(None))
    ).first()
    if row is None:
        return None
    specs = row.flavor.get("extra_specs") or {}
    return Situation(row.vm_state, row.vmid, specs, row.pinned or {}, held=row.held)


@dataclass(frozen=True, slots=True)
class Reported:
    """What is known of the health of a host."""

    host: str
    last_seen_at: datetime.datetime | None
    forced_down: bool
    reached: bool
    """Whether its agent reaches its node."""
    trouble: str | None
    """Why the node can't be used, as its agent says; None: it can."""


def of_server(connection: sa.Connection, server_uuid: str) -> Reported | None:
    """Return the host of a server; None: it is on none, or gone. One query."""
    query = (
        sa.select(
            *(_SERVICES.host, _SERVICES.last_seen_at, _SERVICES.forced_down),
            *(node_health.REACHED, node_health.TROUBLE),
        )
        .select_from(
            node_health.SERVICES.join(
                schema.servers, (_SERVERS.host == _SERVICES.host) & (_SERVICES.binary == COMPUTE)
            )
        )
        .where(_SERVERS.uuid == server_uuid, _SERVERS.deleted_at.is_(None))
    )
    row = connection.execute(query).first()
    return None if row is None else Reported(*row)


@dataclass(frozen=True, slots=True)
class Host:
    """A compute host with its service; sizes in MiB and GiB, and sums over its living servers."""

    id: int
    uuid: str
    host: str
    facts: Mapping[str, Any]
    service_id: int
    service_uuid: str
    disabled: bool
    disabled_reason: str | None
    forced_down: bool
    last_seen_at: datetime.datetime | None
    servers: int
    vcpus_used: int
    memory_used_mib: int
    disk_used_gib: int

    @property
    def reached(self) -> bool:
        """Whether the agent reaches its node."""
        return self.facts.get("online") is not False

    @property
    def trouble(self) -> str | None:
        """Why the node can't be used, as its agent says; None: it can."""
        return None if self.facts.get("healthy", True) else self.facts.get("health")


def _used() -> sa.Subquery:
    return (
        sa.select(
            _SERVERS.host,
            sa.func.count().label("servers"),
            sa.func.sum(_SERVERS.vcpus).label("vcpus"),
            sa.func.sum(_SERVERS.memory_mib).label("memory_mib"),
            sa.func.sum(_SERVERS.disk_gib).label("disk_gib"),
        )
        .where(_SERVERS.deleted_at.is_(None), _SERVERS.host.is_not(None))
        .group_by(_SERVERS.host)
        .subquery()
    )


def _query() -> sa.Select[Any]:
    used = _used()
    service = sa.and_(_SERVICES.host == _HOSTS.host, _SERVICES.binary == COMPUTE)
    return sa.select(
        _HOSTS.id,
        _HOSTS.uuid,
        _HOSTS.host,
        _HOSTS.facts,
        _SERVICES.id.label("service_id"),
        _SERVICES.uuid.label("service_uuid"),
        _SERVICES.disabled,
        _SERVICES.disabled_reason,
        _SERVICES.forced_down,
        _SERVICES.last_seen_at,
        *(
            sa.cast(sa.func.coalesce(used.c[name], 0), sa.Integer)
            for name in ("servers", "vcpus", "memory_mib", "disk_gib")
        ),
    ).select_from(
        schema.hosts.join(schema.services, service).outerjoin(used, used.c.host == _HOSTS.host)
    )


@dataclass(frozen=True, slots=True)
class Place:
    """What a compute host has for servers when it is empty."""

    uuid: str
    host: str
    zone: str
    capacity: Mapping[str, int]
    """Resource class → amount."""
    largest: Mapping[str, int]
    """See ``common.more_hosts.Empty``."""
    disabled: bool
    """By an administrator, or forced down."""


def places(connection: sa.Connection) -> list[Place]:
    """Return all compute hosts. One query."""
    off = _SERVICES.disabled | _SERVICES.forced_down
    query = (
        sa.select(_HOSTS.uuid, _HOSTS.host, services.ZONE, _HOSTS.facts, off.label("off"))
        .select_from(node_health.SERVICES)
        .where(_SERVICES.binary == COMPUTE, _HOSTS.host.is_not(None))
    )
    return [
        Place(
            row.uuid,
            row.host,
            row.availability_zone,
            *_amounts(codec.load(HostFacts, row.facts)),
            bool(row.off),
        )
        for row in connection.execute(query)
    ]


def kinds(connection: sa.Connection, matter: frozenset[str] = frozenset()) -> list[Kind]:
    """Return the kinds of compute hosts, the most frequent first. One query.

    ``matter``: traits that somebody asks for; others make no difference.
    """
    query = (
        sa.select(_HOSTS.host, services.ZONE, _HOSTS.facts)
        .select_from(node_health.SERVICES)
        .where(_SERVICES.binary == COMPUTE, _HOSTS.host.is_not(None))
    )
    found = []
    for host, zone, facts in connection.execute(query):
        known = codec.load(HostFacts, facts)
        traits = host_traits.traits(known) if matter else frozenset()
        there, largest = _amounts(known)
        found.append(more_hosts.Host(host, zone, there, traits, largest))
    return more_hosts.kinds(found, matter)


def rooms(connection: sa.Connection, up_since: datetime.datetime) -> list[HostRoom]:
    """Return the hosts that take servers, with what their servers leave free. One query.

    Hosts that reported since then are up.
    """
    used = _used()
    query = (
        sa.select(
            *(_HOSTS.host, services.ZONE, _HOSTS.facts),
            *(
                sa.cast(sa.func.coalesce(used.c[column], 0), sa.BigInteger).label(name)
                for name, column in SIZES.items()
            ),
        )
        .select_from(node_health.SERVICES.outerjoin(used, used.c.host == _HOSTS.host))
        .where(_SERVICES.binary == COMPUTE, sa.not_(_SERVICES.disabled))
        .where(_HOSTS.host.is_not(None), node_health.is_well(up_since))
    )
    found = []
    for host, zone, facts, *sizes in connection.execute(query):
        known = codec.load(HostFacts, facts)
        there, largest = _amounts(known)
        taken = dict(zip(SIZES, sizes, strict=True))
        free = {name: there.get(name, 0) - amount for name, amount in taken.items()}
        found.append(HostRoom(host, zone, there, free, host_traits.traits(known), largest))
    return found


def _amounts(facts: HostFacts) -> tuple[dict[str, int], dict[str, int]]:
    """Return what may be allocated of a host in all, and for one server: by class."""
    offers = capacity.offers(facts)
    return (
        {name: one.capacity for name, one in offers.items()},
        {name: one.total for name, one in offers.items()},
    )


def list_hosts(
    connection: sa.Connection,
    *,
    name_part: str | None = None,
    limit: int | None = None,
    marker: str | int | None = None,
) -> list[Host]:
    """Return a page of the hosts that have a service, in order of age.

    `name_part` must be in the name. `marker` is a host's UUID, or its row id as an int. Raises
    Invalid for an unknown marker.
    """
    if limit == 0:
        return []
    statement = _query()
    if name_part:
        statement = statement.where(_HOSTS.host.contains(name_part, autoescape=True))
    key: Any = _HOSTS.id if isinstance(marker, int) else _HOSTS.uuid
    page = keyset.Page(limit, marker)
    try:
        rows: Sequence[Any] = keyset.read(
            connection, statement, [keyset.Sort(_HOSTS.id)], page, key, visible=()
        )
    except keyset.MarkerNotFound as error:
        raise Invalid(f"marker [{marker}] not found") from error
    return [Host(*row) for row in rows]


def find(connection: sa.Connection, named: str | int) -> Host | None:
    """Return the host of this UUID, or of this row id as an int; None if there is none."""
    key = _HOSTS.id == named if isinstance(named, int) else _HOSTS.uuid == named
    row = connection.execute(_query().where(key)).first()
    return None if row is None else Host(*row)


def find_by_name(connection: sa.Connection, host: str) -> Host | None:
    """Return the host of this name, or None."""
    row = connection.execute(_query().where(_HOSTS.host == host)).first()
    return None if row is None else Host(*row)


def used_by_project(connection: sa.Connection, host: str) -> list[tuple[str, int, int, int]]:
    """Return what each project's living servers take of a host.

    (project, VCPUs, memory in MiB, disk in GiB), by project.
    """
    sums = [
        sa.cast(sa.func.sum(_SERVERS[name]), sa.Integer)
        for name in ("vcpus", "memory_mib", "disk_gib")
    ]
    query = (
        sa.select(_SERVERS.project_id, *sums)
        .where(_SERVERS.host == host, _SERVERS.deleted_at.is_(None))
        .group_by(_SERVERS.project_id)
        .order_by(_SERVERS.project_id)
    )
    return [tuple(row) for row in connection.execute(query)]
