"""The conditions that members of a group may be in, and the result of a look at them. Pure."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from common import failures
from common.messages.health import CheckResult
from common.resources.groups import (
    FAILURES_MOST,
    Deletion,
    Health,
    Options,
    Repair,
)
from common.resources.states import TaskState, VmState
from conductor.store.groups.groups import Away, Group, Member

#: what can be started
AT_REST = frozenset({VmState.STOPPED, VmState.PAUSED, VmState.SUSPENDED})
_WORKS = frozenset({VmState.ACTIVE, VmState.RESIZED, VmState.RESCUED})
#: added to the interval of checks, as it takes a moment until their results are reported
SETTLE_SECONDS = 10.0
#: when something is looked at again that may change without news
LOOK_SECONDS = 30.0
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
    AWAY = "away"  #: its host can't be reached, and may still run it
    LOST = "lost"  #: its host is lost for good, and runs nothing any more


_BEGINNING = (Condition.BUILDING, Condition.FAILED)


def condition(member: Member) -> Condition:
    """Return the condition of a member, by its server alone."""
    if member.server_uuid is None or member.vm_state is None or member.deleted_at is not None:
        return Condition.NONE
    if member.vm_state == VmState.BUILDING:
        return Condition.BUILDING
    if member.vm_state in _WORKS and member.task_state is None:
        return Condition.WELL
    if _is_kept_off(member):
        return Condition.BUSY
    if member.vm_state == VmState.ERROR and member.launched_at is None:
        return Condition.FAILED
    # What is done to a server in ERROR, unless it is being deleted, repairs it.
    in_error = member.vm_state == VmState.ERROR and member.task_state == TaskState.DELETING
    at_rest = member.vm_state in (*AT_REST, VmState.ERROR) and member.task_state is None
    return Condition.SICK if at_rest or in_error else Condition.BUSY


def is_left_alone(member: Member) -> bool:
    """Return whether a repair of sick members only would leave this one as it is."""
    unwell = (Condition.NONE, Condition.FAILED, Condition.SICK)
    return condition(member) not in unwell and member.health != CheckResult.SICK


@dataclass(frozen=True)
class Facts:
    """A group with all that a round is decided by."""

    group: Group
    members: Sequence[Member]
    options: Options
    deletion: Deletion
    health: Health
    now: datetime.datetime
    recover: bool = False
    """Whether a user asked for a repair: then even all members are repaired at once."""
    checked: bool = False
    """Whether its members' guests are checked."""
    settle_seconds: float = 0.0
    """How long a sick member waits for its repair: until every other member has been checked as
    well, so that a cause that all have in common is noticed."""
    away: Mapping[str, Away] = field(default_factory=dict)
    """Hosts of its members that can't be reached."""
    taken: Mapping[str, str] = field(default_factory=dict)
    """Members without servers whose volumes or ports are not free → why."""
    usable: frozenset[str] = frozenset()
    """Zones in which a host works."""
    clusters: frozenset[tuple[str, str]] = frozenset()
    """(zone, cluster of Proxmox VE) of hosts that work."""

    def is_sick(self, member: Member) -> bool:
        """Return whether a member's guest does not answer, though it runs."""
        return self.checked and member.health == CheckResult.SICK

    def settles_in(self, member: Member) -> float:
        """Return the seconds until a sick member may be repaired.

        Members are checked at different moments, and if all are sick none is repaired: so its
        repair waits until all have been checked.
        """
        if not self.is_sick(member) or member.health_at is None or self.recover:
            return 0.0
        return self.settle_seconds - (self.now - member.health_at).total_seconds()

    def answers(self, member: Member) -> bool:
        """Return whether a member's guest does all that it has to do to be well."""
        # A guest that can't be checked counts as well; users see why it can't.
        return not self.checked or member.health in (CheckResult.WELL, CheckResult.UNKNOWN)


def condition_in(facts: Facts, member: Member) -> Condition:
    """Return the condition of a member, by its server and its host."""
    found, away = condition(member), facts.away.get(str(member.host))
    if away is None or found == Condition.NONE:
        sick = found == Condition.WELL and facts.is_sick(member)
        return Condition.SICK if sick else found
    if member.task_state == TaskState.DELETING:
        # Its VM is removed once the node is back: nothing runs it until then. But its record has
        # what belongs to its place until then.
        return Condition.NONE if away.is_lost and not member.kept else found
    put_away = found == Condition.BUSY and not _is_kept_off(member)
    if found in _BEGINNING or put_away or member.task_state is not None:
        return found
    return Condition.LOST if away.is_lost and not _is_kept_off(member) else Condition.AWAY


def why_away(facts: Facts, member: Member) -> str:
    """Return what a member waits for whose host can't be reached. Users read it: without host."""
    away = facts.away[str(member.host)]
    if away.is_lost and waits_for_node(facts, member):
        return (
            f"Its node is lost, and its former server may still have its {_kept(member)}: it gets "
            "another server once that is seen gone."
        )
    if waits_for_node(facts, member):
        return (
            "Its node does not answer: it is deleted once that is back, or once an administrator "
            "marks the node as down for good."
        )
    if away.is_lost:
        return "Its node is lost; it is not replaced, as its server is locked or held."
    if away.forced_down:
        return "Its node is marked as down, but still answers: it is replaced once that is off."
    return (
        "Its node does not answer, and may still run it: it is replaced once an administrator "
        "marks the node as down for good."
    )


def waits_for_node(facts: Facts, member: Member) -> bool:
    """Return whether a member's deletion waits for a node that may still run it."""
    away = facts.away.get(str(member.host))
    deleting = member.task_state == TaskState.DELETING and member.deleted_at is None
    return deleting and away is not None and not (away.is_lost and not member.kept)


def _kept(member: Member) -> str:
    """Return what belongs to its place, in words."""
    return " and ".join(member.kept)


def _is_kept_off(member: Member) -> bool:
    """Return whether a user doesn't want its server to be touched."""
    return member.locked_by is not None or bool(member.held)


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
    lost: list[Member] = field(default_factory=list)
    """Members on lost hosts, which are replaced unless high availability recovers them."""
    over: bool = False
    """Whether the group is as desired, or nothing more can be done for it."""
    failed: str = ""
    """Why nothing more can be done."""
    waits_for: str = ""
    seconds: float = LATEST_SECONDS
    """When it is looked at again, if nothing happens before."""


def failed(count: int, why: str, now: datetime.datetime) -> dict[str, object]:
    """Return the columns of a group after one more creation that failed."""
    count += 1
    pause = datetime.timedelta(seconds=failures.backoff_seconds(count))
    values: dict[str, object] = {"failures": count, "not_before": now + pause}
    so_far = (
        "A creation failed" if count == 1 else f"{count} creations in a row failed; the last one"
    )
    values["status_reason"] = f"{so_far}: {why}"
    if count >= FAILURES_MOST:
        values["halted"] = f"{count} creations in a row failed, so none is tried: {why}"
    return values


def refused(count: int, why: str, now: datetime.datetime) -> dict[str, object]:
    """Return the columns of a group after a creation that the quota doesn't allow."""
    pause = datetime.timedelta(seconds=failures.backoff_seconds(count + 1))
    reason = f"It waits for quota: {why}"
    return {"refusals": count + 1, "not_before": now + pause, "status_reason": reason}
