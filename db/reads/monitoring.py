"""What conductors show Prometheus of the record, besides `db.reads.metrics`; six statements."""

from __future__ import annotations

import collections
import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from common import clock
from common.guest.requirements import requirements
from common.resources.states import OPEN_STATES
from db import schema
from db.reads.ledger.operations import state_now
from db.reads.servers.servers import COMPUTE

_O, _H, _S, _D = schema.operations.c, schema.hosts.c, schema.servers.c, schema.services.c

#: how long an operation may be past its deadline, or due, before it counts as stuck
STUCK_SECONDS = 600.0
#: what an agent's lease begins with; see conductor.store.ledger.leases
AGENTS = "compute:"

HOST_STATES = ("up", "disabled", "unhealthy", "down")
RESOURCES = ("vcpus", "memory_mib", "disk_gib")


@dataclass(frozen=True, slots=True)
class Operations:
    """Open operations, counted."""

    by_action: Mapping[tuple[str, str], int]
    """By (action, state)."""
    stuck: Mapping[str, int]
    """By action."""
    leases: Mapping[tuple[str, str], int]
    """By (conductor or agent, held or expired)."""


@dataclass(slots=True)
class Cluster:
    """The hosts of one cluster; amounts are by resource, in VCPUs, MiB and GiB."""

    hosts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(HOST_STATES, 0))
    capacity: dict[str, float] = field(default_factory=lambda: dict.fromkeys(RESOURCES, 0.0))
    largest: dict[str, float] = field(default_factory=lambda: dict.fromkeys(RESOURCES, 0.0))
    used: dict[str, float] = field(default_factory=lambda: dict.fromkeys(RESOURCES, 0.0))
    claimed: dict[str, float] = field(default_factory=lambda: dict.fromkeys(RESOURCES, 0.0))


@dataclass(frozen=True, slots=True)
class Waiting:
    """The servers of one zone that wait for room."""

    servers: int
    needs: Mapping[str, float]
    """By resource, in VCPUs, MiB and GiB."""
    since: datetime.datetime


def waiting(connection: sa.Connection) -> dict[str, Waiting]:
    """Count the servers that wait for room, by zone, in one statement."""
    rows = schema.waiting_builds.c
    zone = sa.func.coalesce(rows.zone, "")
    amounts = [sa.func.sum(_S[name]) for name in RESOURCES]
    query = (
        sa.select(zone, sa.func.count(), sa.func.min(rows.since), *amounts)
        .join(
            schema.servers, (_S.uuid == rows.server_uuid) & (_S.operation_id == rows.operation_id)
        )
        .where(_S.deleted_at.is_(None), _S.host.is_(None))
        .group_by(zone)
    )
    return {
        name: Waiting(count, dict(zip(RESOURCES, map(float, needs), strict=True)), since)
        for name, count, since, *needs in connection.execute(query)
    }


@dataclass(frozen=True, slots=True)
class Scope:
    """What servers that wait have in common."""

    zone: str
    flavor: str
    traits: str
    """Those that their hosts must have, and with an exclamation mark those that they must not."""


def waiting_scopes(connection: sa.Connection) -> dict[Scope, int]:
    """Count the servers that wait for room, by scope, in one statement."""
    rows = schema.waiting_builds.c
    query = (
        sa.select(sa.func.coalesce(rows.zone, ""), _S.flavor, _S.image_properties)
        .join(
            schema.servers, (_S.uuid == rows.server_uuid) & (_S.operation_id == rows.operation_id)
        )
        .where(_S.deleted_at.is_(None), _S.host.is_(None))
    )
    found: collections.Counter[Scope] = collections.Counter()
    for zone, flavor, properties in connection.execute(query):
        asked = requirements(0, 0, 0, flavor.get("extra_specs") or {}, properties)
        traits = [*sorted(asked.required), *(f"!{one}" for one in sorted(asked.forbidden))]
        found[Scope(zone, str(flavor.get("name") or ""), ",".join(traits))] += 1
    return dict(found)


def operations(connection: sa.Connection) -> Operations:
    """Count the open operations, in one statement."""
    now = clock.utcnow()
    late = clock.after(-STUCK_SECONDS)
    expired = _O.lease_owner.is_not(None) & (_O.lease_expires_at < now)
    waits = _O.lease_owner.is_(None) | (_O.lease_expires_at < late)
    due = sa.func.coalesce(_O.lease_expires_at, _O.not_before, _O.updated_at) < late
    held = sa.exists().where(
        schema.servers.c.operation_id == _O.id, _S.held, _S.deleted_at.is_(None)
    )
    stuck = ((_O.deadline < late) | (waits & due)) & ~held
    owner = sa.case(
        (_O.lease_owner.is_(None), ""),
        (_O.lease_owner.like(f"{AGENTS}%"), "agent"),
        else_="conductor",
    )
    columns = (
        _O.action.label("action"),
        state_now().label("state_now"),
        owner.label("owner"),
        sa.case((expired, 1), else_=0).label("expired"),
        sa.case((stuck, 1), else_=0).label("stuck"),
    )
    rows = connection.execute(
        sa.select(*columns, sa.func.count().label("count"))
        .where(_O.state.in_(OPEN_STATES))
        .group_by(*columns)
    )
    return _counted(rows)


def _counted(rows: Iterable[Any]) -> Operations:
    by_action: dict[tuple[str, str], int] = {}
    stuck: dict[str, int] = {}
    leases: dict[tuple[str, str], int] = {}
    for action, state, owner, expired, is_stuck, count in rows:
        _add(by_action, (action, state), count)
        if is_stuck:
            _add(stuck, action, count)
        if owner:
            _add(leases, (owner, "expired" if expired else "held"), count)
    return Operations(by_action, stuck, leases)


#: how far back changes are read again: clocks differ, and transactions end late
OVERLAP = datetime.timedelta(seconds=60)


class Clusters:
    """Sums each cluster's hosts and servers; facts are read once, and again when they changed.

    A host's facts are some KiB of JSON; only a few numbers of them are used. For one thread at a
    time.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, tuple[Any, ...]] = {}
        self._read_until: datetime.datetime | None = None

    def read(self, connection: sa.Connection, up_since: datetime.datetime) -> dict[str, Cluster]:
        """Return {cluster: sums}, in three statements.

        Services that reported since then are up. Capacity is that of hosts that are up, real use
        that of all but those that are down.
        """
        found: dict[str, Cluster] = {}
        self._read_facts(connection)
        service = sa.and_(_D.host == _H.host, _D.binary == COMPUTE)
        down = _D.forced_down | sa.func.coalesce(_D.last_seen_at < up_since, sa.true())
        query = sa.select(_H.host, _H.cluster, _D.disabled, down.label("down")).select_from(
            schema.hosts.join(schema.services, service)
        )
        there = {}
        for host, cluster, disabled, is_down in connection.execute(query):
            # A host added between the two statements counts with the next reading.
            if host in self._numbers:
                there[host] = numbers = self._numbers[host]
                into = found.setdefault(cluster, Cluster())
                _add_host(into, bool(disabled), bool(is_down), *numbers)
        self._numbers = there
        _add_claims(connection, found)
        return found

    def _read_facts(self, connection: sa.Connection) -> None:
        """Read the facts that were stored since the last reading."""
        now = clock.utcnow()
        columns = [
            _H.facts[name].as_boolean() if name in _FLAGS else _H.facts[name].as_float()
            for name in _FACTS
        ]
        changed = sa.select(_H.host, *columns)
        if self._read_until is not None:
            changed = changed.where(_H.updated_at >= self._read_until - OVERLAP)
        for row in connection.execute(changed):
            self._numbers[row[0]] = tuple(row[1:])
        self._read_until = now


def _add_claims(connection: sa.Connection, into: dict[str, Cluster]) -> None:
    sums = [sa.func.sum(_S[name]) for name in RESOURCES]
    claims = (
        sa.select(_S.cluster, *sums)
        .where(_S.deleted_at.is_(None), _S.host.is_not(None), _S.cluster.is_not(None))
        .group_by(_S.cluster)
    )
    for row in connection.execute(claims):
        claimed = into.setdefault(row[0], Cluster()).claimed
        claimed.update({name: float(v) for name, v in zip(RESOURCES, row[1:], strict=True)})


_FLAGS = ("online", "healthy")
_FACTS = (
    *_FLAGS,
    *("vcpus", "reserved_vcpus", "cpu_allocation_ratio", "cpu_load"),
    *("memory_mib", "reserved_memory_mib", "ram_allocation_ratio", "memory_used_mib"),
    *("disk_gib", "reserved_disk_gib", "disk_allocation_ratio", "disk_used_gib"),
)


def _add_host(
    into: Cluster,
    disabled: bool,
    down: bool,
    online: bool | None,
    healthy: bool | None,
    *numbers: float | None,
) -> None:
    ill = online is False or healthy is False
    state = "down" if down else "disabled" if disabled else "unhealthy" if ill else "up"
    into.hosts[state] += 1
    for position, name in enumerate(RESOURCES):
        total, reserved, ratio, used = numbers[4 * position : 4 * position + 4]
        total, used = total or 0.0, used or 0.0
        if state == "up":
            factor = 1.0 if ratio is None else ratio
            capacity = max(0.0, float(int((total - (reserved or 0.0)) * factor)))
            into.capacity[name] += capacity
            into.largest[name] = max(into.largest[name], capacity)
        if state != "down":
            into.used[name] += used * total if name == "vcpus" else used


def _add(into: dict[Any, int], key: Any, count: int) -> None:
    into[key] = into.get(key, 0) + count
