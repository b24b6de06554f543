"""Rows of builds that wait for room on a host."""

from __future__ import annotations

import collections
import datetime
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from common.errors import StaleTransition
from common.resources.states import OPEN_STATES
from db.reads.hosts import hosts as host_reads
from db.schema import hosts, operations, servers, waiting_builds

Place = host_reads.Place

#: resource class → amount
Amounts = Mapping[str, int]

#: builds that one statement names
_AT_ONCE = 500
#: how long a decision may take before it doesn't count as one under way
DECIDES_SECONDS = 60


@dataclass(frozen=True)
class Waiting:
    """A build that waits."""

    operation_id: int
    server_uuid: str
    project_id: str
    gang: str | None
    needs: Amounts
    zone: str | None
    since: datetime.datetime
    until: datetime.datetime
    refused: Mapping[str, Amounts]
    """Provider → its free room, where it had enough and the build was refused all the same."""
    tried_at: datetime.datetime
    woken_at: datetime.datetime | None = None
    overtaken: int = 0
    kept: str | None = None
    able: frozenset[str] | None = None
    """The hosts that could take it if they were empty, by zone, traits and size; None: all."""

    @property
    def together(self) -> str | int:
        """What is decided on at once: its gang, or it alone."""
        return self.gang or self.operation_id

    def could_have(self, host: str) -> bool:
        """Return whether a host could take it if that were empty."""
        return self.able is None or host in self.able

    def fits(self, host: str, free: Amounts) -> bool:
        """Return whether a host may take it: there is room, and more than when it was refused."""
        if not self.could_have(host) or any(
            free.get(name, 0) < amount for name, amount in self.needs.items()
        ):
            return False
        before = self.refused.get(host)
        return before is None or any(free.get(name, 0) > n for name, n in before.items())

    def is_deciding(self, now: datetime.datetime) -> bool:
        """Return whether a scheduler decides on it."""
        if self.woken_at is None:
            return False
        return (now - self.woken_at).total_seconds() < DECIDES_SECONDS


_W = waiting_builds.c
_FIELDS = [_W[name] for name in Waiting.__dataclass_fields__ if name in _W]


#: Outer joins: a planner without statistics takes few servers for none, and pairs each of these
#: with each row where it may choose the order.
_JOINED = waiting_builds.outerjoin(operations, operations.c.id == _W.operation_id).outerjoin(
    servers, servers.c.uuid == _W.server_uuid
)
_STILL = sa.case(
    (
        operations.c.state.in_(OPEN_STATES)
        & (servers.c.operation_id == _W.operation_id)
        & servers.c.deleted_at.is_(None)
        & servers.c.host.is_(None),
        1,
    ),
    else_=0,
)
"""1: a row is of a build that still has no host."""


class Version(NamedTuple):
    """Changes whenever one begins or ceases to wait, is woken or was tried, or has a host kept."""

    rows: int
    newest: int
    tried_at: datetime.datetime | None
    woken_at: datetime.datetime | None
    kept: int


_VERSION = sa.select(
    sa.func.count(),
    sa.func.coalesce(sa.func.max(_W.operation_id), 0),
    sa.func.max(_W.tried_at),
    sa.func.max(_W.woken_at),
    sa.func.count(_W.kept),
)


def version(connection: sa.Connection) -> Version:
    """Return the version of all rows."""
    return Version(*connection.execute(_VERSION).one())


def all_waiting(connection: sa.Connection) -> list[Waiting]:
    """Return all builds that wait, by their time of arrival; some may have a host by now."""
    query = sa.select(*_FIELDS).order_by(_W.since, _W.operation_id)
    return [Waiting(*row) for row in connection.execute(query)]


def counts(connection: sa.Connection, project_id: str, without: int) -> tuple[int, int]:
    """Return how many builds wait, of the project and in all, another operation's left out."""
    mine = sa.func.sum(sa.case((_W.project_id == project_id, 1), else_=0))
    query = sa.select(sa.func.coalesce(mine, 0), sa.func.count()).select_from(_JOINED)
    waits = query.where(_STILL == 1, _W.operation_id != without)
    of_project, of_all = connection.execute(waits).one()
    return int(of_project), int(of_all)


def put(connection: sa.Connection, row: Mapping[str, Any]) -> None:
    """Store that a build waits, for the first time or again."""
    again = {name: row[name] for name in ("needs", "refused", "tried_at")} | {"woken_at": None}
    changed = connection.execute(
        waiting_builds.update().where(_W.operation_id == row["operation_id"]).values(again)
    )
    if changed.rowcount == 0:
        connection.execute(waiting_builds.insert(), {**row, "woken_at": None, "overtaken": 0})


def wake(connection: sa.Connection, operation_ids: Sequence[int], now: datetime.datetime) -> None:
    """Store that a scheduler decides on builds again, and make their operations due.

    Raises StaleTransition if one of them was woken since it was read.
    """
    before = now - datetime.timedelta(seconds=DECIDES_SECONDS)
    woken = connection.execute(
        waiting_builds.update()
        .where(
            _W.operation_id.in_(sorted(operation_ids)),
            _W.woken_at.is_(None) | (_W.woken_at <= before),
        )
        .values(woken_at=now)
    )
    if woken.rowcount != len(operation_ids):
        raise StaleTransition(operations=list(operation_ids))
    _make_due(connection, operation_ids)


def overtake(connection: sa.Connection, times: Mapping[int, int]) -> None:
    """Count by how many that asked later builds were overtaken. A statement for each number."""
    alike: dict[int, list[int]] = collections.defaultdict(list)
    for operation_id, number in times.items():
        alike[number].append(operation_id)
    for number, its in sorted(alike.items()):
        connection.execute(
            waiting_builds.update()
            .where(_W.operation_id.in_(its))
            .values(overtaken=_W.overtaken + number)
        )


def keep(connection: sa.Connection, hosts_of: Mapping[int, str | None]) -> None:
    """Store which host is kept for a build; None: none. One statement; none for nobody."""
    rows = [{"of": number, "kept": host} for number, host in sorted(hosts_of.items())]
    if rows:
        connection.execute(
            waiting_builds.update()
            .where(_W.operation_id == sa.bindparam("of"))
            .values(kept=sa.bindparam("kept")),
            rows,
        )


def kept_from(connection: sa.Connection, operation_ids: Collection[int]) -> dict[str, str]:
    """Return the hosts that are kept for others than these operations: UUID → name."""
    of_others = sa.select(hosts.c.uuid, hosts.c.host).select_from(
        _JOINED.join(hosts, hosts.c.uuid == _W.kept)
    )
    query = of_others.where(_STILL == 1, _W.operation_id.not_in(sorted(operation_ids)))
    return {row.uuid: row.host for row in connection.execute(query)}


def forget_refusals(connection: sa.Connection) -> None:
    """Have all hosts count as untried: what filters say may be another thing now."""
    connection.execute(waiting_builds.update().values(refused={}))


def over(connection: sa.Connection) -> dict[int, bool]:
    """Return the operations of builds that wait no more, whose rows are left: whether they have
    a host."""
    query = sa.select(_W.operation_id, servers.c.host.is_not(None)).select_from(_JOINED)
    return {
        number: bool(placed) for number, placed in connection.execute(query.where(_STILL == 0))
    }


def flavors_of(connection: sa.Connection, operation_ids: Sequence[int]) -> list[Any]:
    """Return (operation_id, flavor, image_properties) of builds that wait; no query for none."""
    columns = (_W.operation_id, servers.c.flavor, servers.c.image_properties)
    query = sa.select(*columns).join(servers, servers.c.uuid == _W.server_uuid)
    found: list[Any] = []
    for start in range(0, len(operation_ids), _AT_ONCE):
        some = operation_ids[start : start + _AT_ONCE]
        found += connection.execute(query.where(_W.operation_id.in_(some)))
    return found


def places(connection: sa.Connection) -> list[Place]:
    """Return what all hosts have for servers when they are empty. One query."""
    return host_reads.places(connection)


def uuids_of(connection: sa.Connection, names: Collection[str]) -> list[str]:
    """Return the UUIDs of hosts; no query for none."""
    if not names:
        return []
    return list(connection.scalars(sa.select(hosts.c.uuid).where(hosts.c.host.in_(sorted(names)))))


def delete(connection: sa.Connection, operation_ids: Sequence[int]) -> None:
    """Delete rows of builds that wait no more.

    A build whose server was deleted is due now: it closes itself.
    """
    connection.execute(waiting_builds.delete().where(_W.operation_id.in_(operation_ids)))
    _make_due(connection, operation_ids)


def _make_due(connection: sa.Connection, operation_ids: Sequence[int]) -> None:
    connection.execute(
        operations.update()
        .where(
            operations.c.id.in_(operation_ids),
            operations.c.state.in_(OPEN_STATES),
            operations.c.lease_owner.is_(None),
        )
        .values(not_before=None)
    )
