"""What the whole cloud has, what of it is used, and where most of it is free."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import capacity
from db import schema
from db.reads.hosts import node_health
from db.reads.servers.servers import COMPUTE
from db.reads.volumes import backends

_HOSTS, _SERVICES, _SERVERS = schema.hosts.c, schema.services.c, schema.servers.c

#: resource class → (fact of the size, of what is reserved, of the allocation ratio, used column)
_SIZES: Mapping[str, tuple[str, str, str, str]] = {
    "VCPU": ("vcpus", "reserved_vcpus", "cpu_allocation_ratio", "vcpus"),
    "MEMORY_MB": ("memory_mib", "reserved_memory_mib", "ram_allocation_ratio", "memory_mib"),
}


@dataclass(frozen=True)
class Place:
    """A host, or a storage, and what is free there."""

    name: str
    free: int


@dataclass(frozen=True)
class Amount:
    """A sum over places."""

    total: int
    """What may be allocated."""
    used: int
    free: int
    most_free: Place | None
    """The place with the most room: the limit of one server, or of one volume."""


@dataclass(frozen=True)
class TotalCapacity:
    """The sums over the cloud."""

    hosts: int
    hosts_up: int
    hosts_taking_servers: int
    """Enabled, up and well: only their processors and memory are counted."""
    resources: Mapping[str, Amount]
    """By resource class, as placement counts: reserved amounts left out, overcommitted."""
    storages: int
    storage_gib: Amount
    """Of storages that take disks; a shared one is counted once. As the hypervisor fills it."""


def read(connection: sa.Connection, up_since: datetime.datetime) -> TotalCapacity:
    """Sum up; hosts that reported since then are up. Two queries."""
    used = _used()
    service = sa.and_(_SERVICES.host == _HOSTS.host, _SERVICES.binary == COMPUTE)
    rows = connection.execute(
        sa.select(
            *(_HOSTS.host, _HOSTS.facts),
            node_health.is_up(up_since).label("up"),
            sa.and_(node_health.is_well(up_since), sa.not_(_SERVICES.disabled)).label("takes"),
            *(
                sa.cast(sa.func.coalesce(used.c[name], 0), sa.BigInteger).label(name)
                for *_, name in _SIZES.values()
            ),
        ).select_from(
            schema.hosts.join(schema.services, service).outerjoin(used, used.c.host == _HOSTS.host)
        )
    ).all()
    taking = [row for row in rows if row.takes]
    pools = {one.pool: one for one in backends.read(connection)}
    return TotalCapacity(
        hosts=len(rows),
        hosts_up=sum(bool(row.up) for row in rows),
        hosts_taking_servers=len(taking),
        resources={name: _amount(_of_hosts(taking, name)) for name in _SIZES},
        storages=len(pools),
        storage_gib=_amount(
            (
                _name(one),
                one.storage.total_gib,
                one.storage.total_gib - one.storage.available_gib,
            )
            for one in pools.values()
        ),
    )


def _used() -> sa.Subquery:
    sums = (sa.func.sum(_SERVERS[name]).label(name) for *_, name in _SIZES.values())
    return (
        sa.select(_SERVERS.host, *sums)
        .where(_SERVERS.deleted_at.is_(None), _SERVERS.host.is_not(None))
        .group_by(_SERVERS.host)
        .subquery()
    )


def _of_hosts(rows: Iterable[Any], resource_class: str) -> Iterable[tuple[str, int, int]]:
    size, reserved, ratio, used = _SIZES[resource_class]
    for row in rows:
        facts = row.facts
        total, kept = facts.get(size, 0), facts.get(reserved, 0)
        usable = capacity.usable(total, min(kept, total), facts.get(ratio, 1.0))
        yield row.host, usable, getattr(row, used)


def _name(one: backends.Backend) -> str:
    where = one.cluster if one.storage.shared else one.host
    return f"{one.storage.name} of {where}"


def _amount(places: Iterable[tuple[str, int, int]]) -> Amount:
    """Return the sum of (name, total, used): what is used beyond the total frees nothing."""
    found = list(places)
    rooms = [Place(name, max(0, total - used)) for name, total, used in found]
    return Amount(
        total=sum(total for _, total, _ in found),
        used=sum(used for *_, used in found),
        free=sum(one.free for one in rooms),
        most_free=max(rooms, key=lambda one: (one.free, one.name), default=None),
    )
