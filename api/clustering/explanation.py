"""Why a group is as it is: in sentences, with its members and its last operations."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from api.clustering import views
from common import clock
from common.counting import counted
from common.messages.health import CheckResult
from common.resources.groups import (
    FAILURES_MOST,
    UNEVEN,
    MemberState,
    Options,
    options,
)
from common.resources.states import TaskState
from db.reads.groups import actions, groups
from db.reads.groups.groups import Group, Member
from db.reads.hosts import away as hosts
from db.reads.hosts.away import Away
from db.reads.ledger import waiting
from db.reads.ledger.waiting import Waiting

_LAST = 10
#: how the reason of a group at rest ends; the first sentence has its numbers
_SAID_ALREADY = (" members work.", " member works.")


def of(connection: sa.Connection, group: Group, *, is_admin: bool = False) -> dict[str, Any]:
    """Return the explanation of a group. Two queries; three for administrators, who see hosts;
    one more while a member is given a host."""
    members = groups.members(connection, group.id)
    waits = waiting.of_servers(connection, views.placed(members))
    there = {one.host for one in members if is_admin and one.host is not None}
    away = hosts.away(connection, there, None)
    last = actions.last(connection, group.id, _LAST)
    return {
        "cluster_id": group.id,
        "name": group.name,
        "status": group.status,
        "sentences": [*sentences(group, members, waits), *_of_hosts(members, away)],
        "update": {
            "state": "none" if not group.rolling else "paused" if group.paused else "running",
            "former_profile_id": group.former_profile_id,
        },
        "nodes": [
            {
                "index": one.member_index,
                "name": one.name,
                "status": one.status,
                "server": one.server_uuid,
                "reason": views.reason(one, waits),
                "health": views.health(one),
                **views.kept(one),
            }
            for one in members
        ],
        "actions": [
            {
                "id": str(one.id),
                "action": one.action,
                "status": one.status,
                "message": one.message or "",
                "request_id": one.request_id,
                "at": views.moment(one.started_at),
            }
            for one in last
        ],
    }


def sentences(
    group: Group, members: Sequence[Member], waits: Mapping[str, Waiting]
) -> Iterator[str]:
    """Yield what there is to say of a group. Pure but for the time."""
    working = sum(one.status == "ACTIVE" for one in members)
    yield f"{working} of {counted(group.desired, 'server works', 'servers work')}."
    if group.deleting:
        yield "It is being deleted, which ends once its servers are seen gone."
    if group.halted is not None:
        yield f"Its circuit is open: {group.halted}"
        yield (
            "It is closed by another profile (`micronova group update --profile`) or by hand "
            f"(`micronova group recover {group.id}`)."
        )
    elif group.failures:
        yield f"After {FAILURES_MOST} failed creations in a row none is tried any more."
    reason = group.status_reason
    if reason and group.halted is None and not reason.endswith(_SAID_ALREADY):
        yield reason
    pause = 0.0
    if group.not_before is not None and group.halted is None:
        pause = (group.not_before - clock.utcnow()).total_seconds()
    if pause > 0:
        yield f"The next creation is tried in {int(pause) + 1} s."
    if group.rolling:
        old = sum(one.profile_id != group.profile_id for one in members)
        paused = " It is paused." if group.paused else ""
        others = counted(old, "server is", "servers are")
        yield f"It is being updated: {others} of another profile.{paused}"
    yield from _of_places(group)
    yield from _of_spread(group, members)
    yield from _of_members(members, waits)


def _of_places(group: Group) -> Iterator[str]:
    """Yield what belongs to a group's places."""
    kinds = " and ".join(options(group.config).keep)
    if kinds:
        yield f"Its places keep {kinds}: the next server in a place gets the former one's."


def _of_spread(group: Group, members: Sequence[Member]) -> Iterator[str]:
    """Yield how a group's servers differ by zones, or by clusters, and how they are evened out."""
    asked = options(group.config)
    there = [one for one in members if one.server_uuid and one.deleted_at is None]
    noun, names = ("zones", asked.zones) if asked.zones else ("clusters", asked.clusters)
    found = collections.Counter(
        one.pinned_zone if noun == "zones" else one.cluster for one in there
    )
    counts = {name: found[name] for name in names}
    if len(counts) < 2 or max(counts.values()) - min(counts.values()) < UNEVEN:
        return
    shown = ", ".join(f"{name} {count}" for name, count in counts.items())
    yield (
        f"Its servers are spread unevenly over its {noun}: {shown}. "
        f"{_evened_out(group, asked, noun)}"
    )


def _evened_out(group: Group, asked: Options, noun: str) -> str:
    if not asked.max_surge:
        return "They are left so, as max_surge is 0."
    if group.failures or group.refusals:
        return (
            "They are left so until a creation succeeds, or until "
            f"`micronova group recover {group.id}` is asked for."
        )
    return f"One at a time is replaced, where hosts of the other {noun} work and have room."


def _of_hosts(members: Sequence[Member], away: Mapping[str, Away]) -> Iterator[str]:
    """Yield what an administrator can do about members that can't be reached."""
    names: dict[str, list[str]] = {}
    for one in members:
        host = str(one.host)
        if host in away and not away[host].is_lost:
            names.setdefault(host, []).append(one.name)
    for host, some in names.items():
        begin = f"On host {host}, which can't be reached: {', '.join(some)}."
        if away[host].forced_down:
            yield f"{begin} It is marked as down, but its node answers: power that off."
        else:
            mark = f"openstack compute service set --down {host} nova-compute"
            yield f"{begin} Once its node is powered off and can't come back, mark it: `{mark}`."


def _of_members(members: Sequence[Member], waits: Mapping[str, Waiting]) -> Iterator[str]:
    for one in members:
        if one.state != MemberState.KEPT and (one.locked_by is not None or one.held):
            yield f"{one.name} can't be deleted: its server is locked or held."
        elif one.kept and one.reason and (one.server_uuid is None or one.task_state):
            yield f"{one.name} waits: {one.reason}"
        elif one.health in (CheckResult.SICK, CheckResult.UNKNOWN):
            found = "is not well" if one.health == CheckResult.SICK else "can't be checked"
            yield f"{one.name} {found} since {views.moment(one.health_at)}: {one.health_reason}"
        elif its := waits.get(str(one.server_uuid)):
            yield (
                f"{one.name} {views.waits_for_room(its)}; "
                f"`micronova explain {one.server_uuid}` says what would do."
            )
        elif one.task_state == TaskState.SCHEDULING:
            yield f"{one.name} is being given a host."
