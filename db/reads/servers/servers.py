"""Servers, their faults and the state of their hosts."""

from __future__ import annotations

import datetime
import enum
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa

from common import clock
from common.errors import Invalid
from common.resources.states import OPEN_STATES, TaskState, VmState
from db import resources, schema
from db.json_rows import rows_of
from db.reads import keyset
from db.reads.patterns import bounded, holds, matches
from db.reads.servers import search
from db.records import FaultRecord, ServerRecord, columns, record
from db.types import SharedJson, UtcDateTime

COMPUTE = "nova-compute"
"""The services whose hosts carry servers, under the name that clients know."""

LOCKED = "locked"
"""A sort key that is no column: whether a server is locked."""

_T = schema.servers.c


class Extent(enum.IntEnum):
    """How much is read of servers; each has what those before it have."""

    RECORD = enum.auto()
    DETAIL = enum.auto()
    """And the progress of a copy of disks or memory, volumes, and names of security groups."""
    HOST = enum.auto()
    """And the state of the host."""


@record
class Server(ServerRecord):
    """A row of `servers`, with what else lists show."""

    description: str | None
    reservation_id: str
    config_drive: bool
    auto_disk_config: bool
    """The requested disk configuration, which is only shown."""
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    terminated_at: datetime.datetime | None
    server_group_uuid: str | None = None
    locked_by: str | None = None
    """`common.resources.locks.LockedBy`; None: not locked."""
    locked_reason: str | None = None
    access_ip_v4: str | None = None
    access_ip_v6: str | None = None
    copied_percent: int | None = None
    """How much of a copy in progress is done, where an agent says so; None: not asked for."""
    volumes: Sequence[Any] | None = None
    """Of each attached volume when it was, the attachment's and the volume's ID, and whether it
    is deleted with the server; in any order."""
    group_names: Sequence[Any] | None = None
    """The names of the security groups of each port, in any order."""
    service_disabled: bool | None = None
    """The state of the host's compute service; None: not asked for, or there is none."""
    service_forced_down: bool | None = None
    service_seen_at: datetime.datetime | None = None
    node_online: bool | None = None
    """Whether the host's node answered in the last refresh."""


class Name(NamedTuple):
    """What a short list shows of a server."""

    uuid: str
    name: str


@dataclass(frozen=True)
class Filters:
    """Conditions on servers; empty or None restricts nothing."""

    visible: Mapping[str, str] = field(default_factory=dict)
    """column of `servers` → its value in all visible servers: no other server is listed, nor can
    be a marker."""
    exact: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """column of `servers` → allowed values."""
    patterns: Mapping[str, str] = field(default_factory=dict)
    """column → regular expression."""
    flavor_id: str | None = None
    ip: str | None = None
    """Regular expression for one of the IPv4 addresses; with ``ip6``, either of them suffices."""
    ip6: str | None = None
    tags: Sequence[str] = ()
    tags_any: Sequence[str] = ()
    not_tags: Sequence[str] = ()
    not_tags_any: Sequence[str] = ()
    search: str | None = None
    """See `db.reads.servers.search`."""
    locked: bool | None = None
    changed_since: datetime.datetime | None = None
    changed_before: datetime.datetime | None = None
    """The whole second that it names is included."""
    deleted: bool | None = False
    """None: both living and deleted ones."""

    @property
    def searched(self) -> list[str]:
        """Return the regular expressions."""
        return [*self.patterns.values(), *filter(None, (self.ip, self.ip6))]


_SERVICE = schema.services.c
_SERVICE_COLUMNS = {
    "service_disabled": _SERVICE.disabled,
    "service_forced_down": _SERVICE.forced_down,
    "service_seen_at": _SERVICE.last_seen_at,
    # Without a host MariaDB would call it false.
    "node_online": sa.case(
        (schema.hosts.c.host.is_not(None), schema.hosts.c.facts["online"].as_boolean())
    ),
}
#: task_states in which disks or memory may be copied
_COPYING = (
    *(TaskState.SPAWNING, TaskState.REBUILD_SPAWNING, TaskState.RESCUING),
    *(TaskState.RESIZE_MIGRATING, TaskState.RESIZE_REVERTING, TaskState.MIGRATING),
    *(TaskState.IMAGE_SNAPSHOT, TaskState.IMAGE_BACKUP),
)


def _copied() -> sa.ColumnElement[int | None]:
    """Return what the running step of a server's open operation says of its copy.

    The database looks for it only where the task_state may mean a copy.
    """
    operations, steps = schema.operations.c, schema.operation_events.c
    percent = steps.detail["progress", "percent"].as_integer()
    latest = (
        sa.select(percent)
        .join_from(schema.operations, schema.operation_events, steps.operation_id == operations.id)
        .where(
            resources.ITS_SERVER,
            _one_of(operations.state, OPEN_STATES),
            steps.finished_at.is_(None),
            percent.is_not(None),
        )
        .order_by(operations.id.desc(), steps.started_at.desc())
        .limit(1)
    )
    return sa.case((_one_of(_T.task_state, _COPYING), latest.scalar_subquery())).label(
        "copied_percent"
    )


def _one_of(column: sa.Column[Any], values: Iterable[str]) -> sa.ColumnElement[bool]:
    """Return ``column.in_(values)``, compiled once: an IN is rendered at each execution."""
    return sa.or_(*(column == value for value in values))


def _volumes() -> sa.ColumnElement[Any]:
    its = schema.volume_attachments.c
    shown = rows_of(its.created_at, its.id, its.volume_id, its.delete_on_termination)
    found = sa.select(shown).where(its.server_uuid == _T.uuid)
    return sa.cast(found.scalar_subquery(), SharedJson).label("volumes")


def _group_names() -> sa.ColumnElement[Any]:
    port, group, member = (
        schema.ports.c,
        schema.security_groups.c,
        schema.port_security_groups.c,
    )
    joined = sa.select(rows_of(group.name)).select_from(schema.ports)
    joined = joined.join(schema.port_security_groups, member.port_id == port.id)
    joined = joined.join(schema.security_groups, group.id == member.security_group_id)
    found = joined.where(port.server_uuid == _T.uuid)
    return sa.cast(found.scalar_subquery(), SharedJson).label("group_names")


#: JSON that is the same for many servers
_SHARED = ("flavor", "image_properties", "meta", "tags", "scheduler_hints")
_CAST = {name: sa.cast(_T[name], SharedJson) for name in _SHARED}
_COLUMNS = columns(schema.servers, Server, **_CAST)
_WITHOUT_USER_DATA = columns(schema.servers, Server, **_CAST, user_data=sa.null())
_FAULT_COLUMNS = columns(schema.faults, FaultRecord)


def find(
    connection: sa.Connection,
    uuid: str,
    project_id: str | None = None,
    *,
    deleted: bool = False,
    extent: Extent = Extent.RECORD,
) -> Server | None:
    """Return the server of this UUID, or None; `project_id`: only if it is that project's.

    With `deleted` also a deleted one.
    """
    statement = _find(extent, project_id is not None, deleted)
    row = connection.execute(statement, {"uuid": uuid, "project_id": project_id}).first()
    return None if row is None else Server(*row)


@functools.cache
def _find(extent: Extent, of_project: bool, deleted: bool) -> sa.Select[Any]:
    # Built once: a statement of so many columns takes longer to build than to execute.
    query = _select(extent).where(_T.uuid == sa.bindparam("uuid"))
    if of_project:
        query = query.where(_T.project_id == sa.bindparam("project_id"))
    return query if deleted else query.where(_T.deleted_at.is_(None))


@functools.cache
def _select(extent: Extent, user_data: bool = True) -> sa.Select[Any]:
    bare = sa.select(*(_COLUMNS if user_data else _WITHOUT_USER_DATA))
    if extent is Extent.RECORD:
        return bare
    detailed = bare.add_columns(_copied(), _volumes(), _group_names())
    if extent is Extent.DETAIL:
        return detailed
    mine = sa.and_(_SERVICE.host == _T.host, _SERVICE.binary == COMPUTE)
    return detailed.add_columns(*_SERVICE_COLUMNS.values()).select_from(
        schema.servers.outerjoin(schema.services, mine).outerjoin(
            schema.hosts, schema.hosts.c.host == _T.host
        )
    )


def list_servers(
    connection: sa.Connection,
    filters: Filters,
    *,
    extent: Extent = Extent.RECORD,
    user_data: bool = True,
    sort: Sequence[tuple[str, bool]] = (),
    limit: int | None = None,
    marker: str | None = None,
) -> list[Server]:
    """Return a page of the servers that pass `filters`; user data may be long, and be left out.

    `sort` is (column, descending); newest first follows. `marker` is the UUID of the last server
    of the page before, which may be deleted by now.
    Raises Invalid for an unknown marker or a pattern that can't be asked.
    """
    statement, page = _select(extent, user_data), keyset.Page(limit, marker)
    return [Server(*row) for row in _page(connection, statement, filters, sort, page)]


def list_names(
    connection: sa.Connection,
    filters: Filters,
    *,
    sort: Sequence[tuple[str, bool]] = (),
    limit: int | None = None,
    marker: str | None = None,
) -> list[Name]:
    """Return the names of the servers that `list_servers` returns."""
    page = keyset.Page(limit, marker)
    return [Name(*row) for row in _page(connection, _NAMES, filters, sort, page)]


_NAMES = sa.select(_T.uuid, _T.name)


def _page(
    connection: sa.Connection,
    statement: sa.Select[Any],
    filters: Filters,
    sort: Sequence[tuple[str, bool]],
    page: keyset.Page,
) -> Sequence[Any]:
    if page.limit == 0 or any(not values for values in filters.exact.values()):
        return []
    statement = statement.where(*conditions(connection, filters))
    visible = [_T[name] == value for name, value in filters.visible.items()]
    try:
        with bounded(filters.searched):
            return keyset.read(connection, statement, _order(sort), page, _T.uuid, visible=visible)
    except keyset.MarkerNotFound as error:
        raise Invalid(f"marker [{page.marker}] not found") from error


#: the value of NULL in an order, by type of the column: it sorts before everything
_FIRST: Mapping[type, Any] = {
    sa.String: "",
    sa.Integer: -1,
    UtcDateTime: datetime.datetime(1, 1, 1, tzinfo=datetime.UTC),
}


def _order(sort: Sequence[tuple[str, bool]]) -> list[keyset.Sort]:
    descending = sort[0][1] if sort else True
    named = {name for name, _ in sort}
    ties = [(name, descending) for name in ("created_at", "id") if name not in named]
    return [keyset.Sort(_sorted_by(name), down) for name, down in [*sort, *ties]]


def _sorted_by(name: str) -> sa.ColumnElement[Any]:
    """Return the expression of a sort key: a column, or `locked`."""
    if name == LOCKED:
        return sa.case((_T.locked_by.is_(None), 0), else_=1)
    return _never_null(_T[name])


def _never_null(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    if not column.nullable:
        return column
    value = next(first for kind, first in _FIRST.items() if isinstance(column.type, kind))
    first = sa.literal(value, column.type)
    return sa.func.coalesce(column, first, type_=column.type)


def conditions(connection: sa.Connection, filters: Filters) -> Iterable[sa.ColumnElement[bool]]:
    """Yield the conditions of `filters`, but those of what is visible."""
    for name, values in filters.exact.items():
        yield _T[name] == values[0] if len(values) == 1 else _T[name].in_(values)
    for name, pattern in filters.patterns.items():
        yield matches(_T[name], pattern)
    if filters.flavor_id is not None:
        yield _T.flavor["id"].as_string() == filters.flavor_id
    if filters.deleted is not None:
        # As in Nova soft-deleted servers are listed with those that are gone.
        soft = _T.vm_state == VmState.SOFT_DELETED
        gone = sa.or_(_T.deleted_at.is_not(None), soft)
        yield gone if filters.deleted else sa.and_(_T.deleted_at.is_(None), sa.not_(soft))
    if filters.locked is not None:
        yield _T.locked_by.is_not(None) if filters.locked else _T.locked_by.is_(None)
    changed = sa.func.coalesce(_T.deleted_at, _T.updated_at, _T.created_at)
    if filters.changed_since is not None:
        yield changed >= sa.literal(filters.changed_since, _T.created_at.type)
    if filters.changed_before is not None:
        until = clock.end_of(filters.changed_before)
        yield changed <= sa.literal(until, _T.created_at.type)
    yield from _addresses(filters)
    yield from _tags(connection, filters)
    if filters.search is not None:
        yield search.finds(connection, filters.search)


def _addresses(filters: Filters) -> Iterable[sa.ColumnElement[bool]]:
    """Yield the condition on the addresses of all ports; as in Nova, one match is enough."""
    ports, more = schema.ports.c, schema.port_addresses.c
    wanted = [
        (pattern, separator)
        for pattern, separator in ((filters.ip, "."), (filters.ip6, ":"))
        if pattern is not None
    ]
    if not wanted:
        return

    def found(ip: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
        return sa.or_(*(ip.contains(between) & matches(ip, one) for one, between in wanted))

    others = sa.exists(sa.select(1).where(more.port_id == ports.id, found(more.ip)))
    mine = sa.or_(found(ports.ip), found(ports.ip6), others)
    yield sa.exists(sa.select(1).where(ports.server_uuid == _T.uuid, mine))


def _tags(connection: sa.Connection, filters: Filters) -> Iterable[sa.ColumnElement[bool]]:
    def each(tags: Sequence[str]) -> list[sa.ColumnElement[bool]]:
        return [holds(connection, _T.tags, tag) for tag in tags]

    if filters.tags:
        yield sa.and_(*each(filters.tags))
    if filters.tags_any:
        yield sa.or_(*each(filters.tags_any))
    if filters.not_tags:
        yield sa.not_(sa.and_(*each(filters.not_tags)))
    if filters.not_tags_any:
        yield sa.not_(sa.or_(*each(filters.not_tags_any)))


def faults_of(connection: sa.Connection, uuids: Sequence[str]) -> dict[str, FaultRecord]:
    """Return the latest fault of each of these servers that has one."""
    if not uuids:
        return {}
    faults = schema.faults.c
    latest = (
        sa.select(sa.func.max(faults.id))
        .where(faults.server_uuid.in_(uuids))
        .group_by(faults.server_uuid)
    )
    rows = connection.execute(sa.select(*_FAULT_COLUMNS).where(faults.id.in_(latest)))
    return {fault.server_uuid: fault for fault in (FaultRecord(*row) for row in rows)}


def on_hosts(connection: sa.Connection, hosts: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Return living servers by host: {host: [(UUID, id)]}; the id makes the instance name."""
    found: dict[str, list[tuple[str, str]]] = {host: [] for host in hosts}
    query = (
        sa.select(_T.host, _T.uuid, _T.id)
        .where(_T.host.in_(hosts), _T.deleted_at.is_(None))
        .order_by(_T.id)
    )
    for host, uuid, number in connection.execute(query):
        found[host].append((uuid, f"instance-{number:08x}"))
    return found


def hosts_by_uuid(connection: sa.Connection, uuids: Sequence[str]) -> dict[str, str | None]:
    """Return the host, or None, of each of these servers that lives: one query."""
    query = sa.select(_T.uuid, _T.host).where(
        _T.uuid.in_(sorted(set(uuids))), _T.deleted_at.is_(None)
    )
    return dict(connection.execute(query).all())
