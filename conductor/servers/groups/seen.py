"""What a group's members are to it, and what a look at them leads to. Pure."""

from __future__ import annotations

import collections
import datetime
import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

from common import failures
from common.resources.groups import (
    FAILURES_MOST,
    Deletion,
    Health,
    Options,
    Repair,
)
from common.resources.states import VmState
from conductor.store.groups.groups import Group, Member

#: what can be started
AT_REST = frozenset({VmState.STOPPED, VmState.PAUSED, VmState.SUSPENDED})
_WORKS = frozenset({VmState.ACTIVE, VmState.RESIZED, VmState.RESCUED})
#: the longest time until a group with something open is looked at again, whatever happens
LATEST_SECONDS = 600.0


class Condition(enum.StrEnum):
    """What a member's server is to its group."""

    NONE = "none"  #: it has none, or none any more
    BUILDING = "building"
    FAILED = "failed"  #: its creation has
    WELL = "well"
    BUSY = "busy"  #: something is done to it, or it was put away by its user
    SICK = "sick"


def condition(member: Member) -> Condition:
    """Return what a member's server is."""
    if member.server_uuid is None or member.vm_state is None or member.deleted_at is not None:
        return Condition.NONE
    if member.vm_state == VmState.BUILDING:
        return Condition.BUILDING
    if member.vm_state in _WORKS and member.task_state is None:
        return Condition.WELL
    if member.locked_by is not None or member.held:
        # A user who locks a server doesn't want it to be touched.
        return Condition.BUSY
    if member.vm_state == VmState.ERROR:
        return Condition.SICK if member.launched_at is not None else Condition.FAILED
    at_rest = member.vm_state in AT_REST and member.task_state is None
    return Condition.SICK if at_rest else Condition.BUSY


@dataclass(frozen=True)
class Facts:
    """A group with what it is asked."""

    group: Group
    members: Sequence[Member]
    options: Options
    deletion: Deletion
    health: Health
    now: datetime.datetime
    recover: bool = False
    """Whether somebody asked that members be repaired: even all at once."""
    unanswered: frozenset[str] = frozenset()
    """Servers whose guests do not answer, though they run."""


@dataclass
class Round:
    """What is done now."""

    changed: dict[str, dict[str, object]] = field(default_factory=dict)
    """Member → columns that change."""
    removed: list[str] = field(default_factory=list)
    """Members that are gone with their servers."""
    out: list[Member] = field(default_factory=list)
    """Members that leave the group with their servers."""
    added: int = 0
    """New members."""
    group: dict[str, object] = field(default_factory=dict)
    """Columns of the group that change."""
    creates: list[str] = field(default_factory=list)
    """Members that get a server; new ones do so in the round that follows."""
    deletes: list[str] = field(default_factory=list)
    """Servers that are deleted."""
    repairs: list[tuple[Member, Repair]] = field(default_factory=list)
    over: bool = False
    """Whether the group is as desired, or nothing more can be done for it."""
    failed: str = ""
    """Why nothing more can be done."""
    waits_for: str = ""
    seconds: float = LATEST_SECONDS
    """When it is looked at again, if nothing happens before."""


def zone(zones: Sequence[str], members: Sequence[Member]) -> str | None:
    """Return the zone that has the fewest of these members; the first of those; None: no zones."""
    counts = collections.Counter(
        one.pinned_zone for one in members if condition(one) != Condition.NONE
    )
    return min(zones, key=lambda one: (counts[one], zones.index(one)), default=None)


def failed(count: int, why: str, now: datetime.datetime) -> dict[str, object]:
    """Return the columns of a group after one more creation that failed."""
    count += 1
    pause = datetime.timedelta(seconds=failures.backoff_seconds(count))
    values: dict[str, object] = {"failures": count, "not_before": now + pause}
    values["status_reason"] = f"{count} creations in a row failed; the last one: {why}"
    if count >= FAILURES_MOST:
        values["halted"] = f"{count} creations in a row failed, so none is tried: {why}"
    return values


def refused(count: int, why: str, now: datetime.datetime) -> dict[str, object]:
    """Return the columns of a group after a creation that the quota doesn't allow."""
    pause = datetime.timedelta(seconds=failures.backoff_seconds(count + 1))
    reason = f"It waits for quota: {why}"
    return {"refusals": count + 1, "not_before": now + pause, "status_reason": reason}
