"""What would make room for builds that wait: a host, or the end of a server."""

from __future__ import annotations

import collections
import datetime
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from common import near_room
from common.more_hosts import Wanted, wanted_of
from common.near_room import Ending, HostRoom, Near
from db import schema
from db.reads.hosts import hosts
from db.reads.ledger.waiting import Waiting

_S = schema.servers.c
_SIZES = [_S[column] for column in hosts.SIZES.values()]


@dataclass(frozen=True, slots=True)
class Ways:
    """What would do for a build; for those that are placed together nothing is named."""

    nearest: Near | None = None
    """The host that lacks least; None: none lacks room only."""
    like_host: str | None = None
    """One more host like it would do."""
    would_do: str | None = None
    """The smallest server of the same project whose end would; None: none, or the build needs
    what the record doesn't say of servers."""


def read(
    connection: sa.Connection,
    found: Sequence[Waiting],
    up_since: datetime.datetime,
    *,
    ends: bool = True,
) -> Mapping[int, Ways]:
    """Return what would do for each build, by its operation; three queries, none for nobody.

    Hosts that reported since then are up. ``ends``: look at the projects' servers, too.
    """
    alone = [one for one in found if one.gang is None]
    if not alone:
        return {}
    asked = _asked(connection, alone)
    rooms = hosts.rooms(connection, up_since)
    endings = _endings(connection, {one.project_id for one in alone}) if ends else {}
    alike: dict[object, Ways] = {}
    ways = {}
    for one in alone:
        wish = asked[one.server_uuid]
        key = (one.project_id, *wish[1:], tuple(sorted(wish.needs.items())))
        if key not in alike:
            alike[key] = _ways(wish, rooms, endings.get(one.project_id, ()))
        ways[one.operation_id] = alike[key]
    return ways


def _ways(asked: Wanted, rooms: Sequence[HostRoom], endings: Sequence[Ending]) -> Ways:
    known = asked.needs.keys() <= hosts.SIZES.keys()
    ends = near_room.would_make_room(asked, rooms, endings if known else ())
    return Ways(
        near_room.nearest(asked, rooms), near_room.one_more(asked, rooms), next(ends, None)
    )


def _asked(connection: sa.Connection, found: Sequence[Waiting]) -> Mapping[str, Wanted]:
    of = {one.server_uuid: one for one in found}
    query = sa.select(_S.uuid, _S.flavor, _S.image_properties).where(_S.uuid.in_(sorted(of)))
    made = {}
    for uuid, flavor, properties in connection.execute(query):
        one = of[uuid]
        made[uuid] = wanted_of(one.needs, one.zone, flavor, properties)
    return made


def _endings(
    connection: sa.Connection, projects: Collection[str]
) -> Mapping[str, Sequence[Ending]]:
    """Return the servers of projects that are on hosts, the smallest first."""
    query = (
        sa.select(_S.project_id, _S.uuid, _S.host, *_SIZES)
        .where(_S.project_id.in_(sorted(projects)))
        .where(_S.deleted_at.is_(None), _S.host.is_not(None))
        .order_by(*_SIZES, _S.id)
    )
    found: dict[str, list[Ending]] = collections.defaultdict(list)
    for project, uuid, host, *sizes in connection.execute(query):
        found[project].append(Ending(uuid, host, dict(zip(hosts.SIZES, sizes, strict=True))))
    return found
