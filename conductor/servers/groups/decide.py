"""Decides what a group needs, from the state of its members. Pure.

The result is a ``Round``: new values for rows of the group and its members, and the creations,
deletions and repairs of servers that begin after those rows are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from common.counting import counted
from common.resources.groups import (
    REPAIRS_MOST,
    MemberState,
    Repair,
    Status,
)
from common.resources.states import VmState
from conductor.servers.groups import order, spread
from conductor.servers.groups.draft import Draft
from conductor.servers.groups.seen import (
    AT_REST,
    LOOK_SECONDS,
    Condition,
    Facts,
    Round,
    failed,
    waits_for_node,
    why_away,
)
from conductor.store.groups.groups import Member


def after(facts: Facts) -> Round:
    """Return what is done after a look."""
    made = _Deciding(facts)
    made.decide()
    return made.round


class _Deciding(Draft):
    """One look at a group, step by step."""

    def decide(self) -> None:
        """Fill the round."""
        self._forget_gone()
        self._count_results()
        if self.group.deleting:
            self._mark(self._kept(), MemberState.LEAVING)
        else:
            self._fit_size()
            self._tend()
            self._roll()
            self._even_out()
            self._create()
        self._delete()
        self._end()

    # --- what has happened

    def _forget_gone(self) -> None:
        """Remove leaving members whose servers are gone; let others without a server get one."""
        for one in list(self.members.values()):
            if self.seen[one.id] != Condition.NONE:
                continue
            deleted = one.server_uuid is not None
            if deleted and one.state == MemberState.KEPT and self.options.shrink:
                self._shrink(one)
            elif one.state == MemberState.LEAVING:
                self._drop(one)
            elif deleted:
                why = one.reason or "Its server was deleted."
                values = {"server_uuid": None, "ready_at": None, "reason": why}
                self._change(one, state=MemberState.KEPT, **values)

    def _shrink(self, member: Member) -> None:
        """Lower the desired size by one, as the user deleted a member's server."""
        self._set(desired=max(self.group.desired - 1, self.group.min_size))
        self._drop(member)

    def _count_results(self) -> None:
        """Count creations that failed or succeeded since the last look."""
        for one in self._is(Condition.FAILED):
            if one.state == MemberState.KEPT:
                self._fail(one.reason or "its creation failed")
                self._mark([one], MemberState.REPLACED)
        for one in self._unsteady():
            self._fail(f"{one.name} did not remain well for long enough")
            self._mark([one], MemberState.REPLACED)
        for one in self._never_well():
            self._fail(f"{one.name} did not become well: {one.health_reason}")
            self._mark([one], MemberState.REPLACED, f"It did not become well: {one.health_reason}")
        for one in self._is(Condition.WELL):
            if not self.facts.answers(one):
                continue
            if one.ready_at is None and one.state == MemberState.KEPT:
                self._change(one, ready_at=self.facts.now, reason="")
                if one.profile_id == self.group.profile_id:
                    self._set(failures=0, refusals=0, not_before=None, halted=None)
            elif one.state == MemberState.KEPT and one.reason:
                self._change(one, reason="")
            elif one.recoveries and self._is_ready(one):
                self._change(one, recoveries=0)

    def _unsteady(self) -> list[Member]:
        """Return members that became sick before they had been well for long enough.

        None if all members are unwell: then the cause is not their creation.
        """
        if self._all_unwell():
            return []
        return [
            one
            for one in self._is(Condition.SICK)
            if one.ready_at is not None and self._ready_in(one) > 0 and self._is_settled(one)
        ]

    def _never_well(self) -> list[Member]:
        """Return new members that their checks have never found well.

        None if all members are unwell: then the cause is not their creation.
        """
        if self._all_unwell():
            return []
        return [
            one
            for one in self._is(Condition.SICK)
            if one.state == MemberState.KEPT
            and self.facts.is_sick(one)
            and one.ready_at is None
            and not one.recoveries
            and self._is_settled(one)
        ]

    def _is_settled(self, member: Member) -> bool:
        """Return whether a sick member may be repaired now; if not, plan a look for that time."""
        wait = self.facts.settles_in(member)
        if wait > 0:
            self.round.seconds = min(self.round.seconds, wait)
        return wait <= 0

    def _all_unwell(self) -> list[Member]:
        """Return all members if all of them are unwell; none if there is only one, or if the
        user asked for a repair."""
        unwell = [one for one in self._is(*_UNWELL) if one.state == MemberState.KEPT]
        launched = self._is(*_UNWELL, Condition.WELL, Condition.BUSY)
        alone = len(unwell) < 2 or len(unwell) < len(launched)
        return [] if alone or self.facts.recover else unwell

    def _fail(self, why: str) -> None:
        values = failed(self.group.failures, why, self.facts.now)
        self._set(**values)

    # --- its size

    def _fit_size(self) -> None:
        kept = self._kept()
        surge = self._surge()
        missing = self.group.desired - len(kept)
        if missing > 0:
            self.round.added = max(self.round.added, missing)
        elif -missing > surge:
            gone = self._first(kept)[: -missing - surge]
            if self.facts.deletion.destroy:
                uneven = len(gone) == 1 and self._is_uneven(kept)
                noun = "zone" if self.options.zones else "cluster"
                crowded = f"Its {noun} has more servers than others."
                why = crowded if uneven else "The group shrinks."
                self._mark(gone, MemberState.LEAVING, why)
            else:
                self._take_out(gone)

    def _take_out(self, members: Iterable[Member]) -> None:
        for one in members:
            self.round.out.append(one)
            del self.members[one.id]

    def _surge(self) -> int:
        """Return by how many members the group may exceed its size now."""
        outdated = sum(map(self._is_outdated, self._kept()))
        return max(min(self.options.max_surge, outdated), self._spread_surge())

    # --- its zones, or clusters

    def _is_uneven(self, members: Iterable[Member]) -> bool:
        """Return whether these members are spread unevenly over the zones that work, or over the
        clusters if the group names no zones."""
        if self.options.zones:
            zones = [one for one in self.options.zones if one in self.facts.usable]
            return spread.is_uneven(zones, members, spread.by_zone)
        there = [*members]
        works = spread.clusters_in(self.facts.clusters, {one.pinned_zone for one in there})
        clusters = [one for one in self.options.clusters if one in works]
        return spread.is_uneven(clusters, there, spread.by_cluster)

    def _spread_surge(self) -> int:
        """Return 1 while a member is created for a zone or cluster that has too few; else 0.

        After a creation that failed or was refused it is 0 until another creation succeeds.
        """
        group = self.group
        stopped = group.failures or group.refusals or group.rolling or group.halted is not None
        if not self.options.max_surge or stopped:
            return 0
        kept = self._kept()
        ready = [one for one in kept if self._is_ready(one)]
        new = len(kept) - len(ready)
        # True if only the member that was added for this is not ready yet.
        is_one = new == max(0, len(kept) - group.desired) and len(kept) <= group.desired + 1
        return int(is_one and self._is_uneven(ready))

    def _even_out(self) -> None:
        """Add a member for a zone or cluster that has too few, once nothing else is under way."""
        leaving = len(self.members) - len(self._kept())
        if len(self._kept()) == self.group.desired and not leaving and self._spread_surge():
            self.round.added = max(self.round.added, 1)

    def _first(self, members: Sequence[Member]) -> list[Member]:
        """Return members in the order in which they leave."""
        working = {one.id for one in members if self.seen[one.id] in _WORKING}
        return order.first(self.group, self.facts.deletion.first, members, working)

    # --- members that are not well

    def _tend(self) -> None:
        self._explain_away()
        if all_of_them := self._all_unwell():
            self.round.waits_for = (
                f"All of its {len(all_of_them)} members are not well at once: a network, a "
                "storage or a site may be away, and none is repaired. Repair them by "
                "`micronova group recover`."
            )
            return
        unwell = [one for one in self._is(*_UNWELL) if one.state == MemberState.KEPT]
        room = self.options.at_once - len(self._is(Condition.BUILDING))
        lost = [one for one in unwell if self.seen[one.id] == Condition.LOST][: max(0, room)]
        self.round.lost = lost
        room -= len(lost)
        for one in unwell:
            if self.seen[one.id] != Condition.SICK or not self._is_settled(one):
                continue
            repair = self._repair_of(one)
            if repair != Repair.RECREATE:
                again = {"health": None, "repaired_at": self.facts.now}
                self._change(one, recoveries=one.recoveries + 1, ready_at=None, **again)
                self.round.repairs.append((one, repair))
            elif room > 0:
                room -= 1
                self._mark([one], MemberState.REPLACED, _why(one))

    def _explain_away(self) -> None:
        """Write for each member that can't be reached, and might still run, what it waits for."""
        texts = []
        leaving = [one for one in self.members.values() if waits_for_node(self.facts, one)]
        for one in (*self._is(Condition.AWAY), *leaving):
            why = why_away(self.facts, one)
            if one not in leaving:
                texts.append(f"{one.name} can't be reached. {why}")
            if one.reason != why:
                self._change(one, reason=why)
        self.round.waits_for = " ".join(texts[:_TEXTS_MOST])

    def _is_contradicted(self) -> bool:
        """Return whether a node that is marked as down still answers.

        Nothing reports when it ceases to, so the group is looked at again.
        """
        away = [self.facts.away[str(one.host)] for one in self._is(Condition.AWAY)]
        return any(one.forced_down and one.answers for one in away)

    def _repair_of(self, member: Member) -> Repair:
        """Return what is tried next: what can be started is started first."""
        ways = [*self.facts.health.repairs]
        if member.vm_state in AT_REST and ways[0] == Repair.RECREATE:
            ways.insert(0, Repair.REBOOT)
        tried = member.recoveries // REPAIRS_MOST
        return ways[tried] if tried < len(ways) else Repair.RECREATE

    # --- a rolling update

    def _roll(self) -> None:
        outdated = [one for one in self._kept() if self._is_outdated(one)]
        if not outdated:
            if self._rolled():
                self._set(rolling=False, paused=False)
            return
        if self.group.halted is not None and self._roll_back():
            return
        if self.group.paused or self.group.halted is not None:
            return
        # Members that do not work may be replaced at once, unless all of them do not work.
        idle = [one for one in outdated if self.seen[one.id] in _MISSED_BY_NOBODY]
        all_of_them = self._all_unwell()
        self._retire(one for one in idle if one not in all_of_them and self._is_settled(one))
        ready = sum(map(self._is_ready, self._kept()))
        spare = ready - (self.group.desired - self.options.max_unavailable)
        working = [one for one in self._first(outdated) if one not in idle]
        self._retire(working[: max(0, spare)])
        left = sum(self._is_outdated(one) for one in self._kept())
        wanted = self.group.desired + min(self.options.max_surge, left)
        self.round.added = max(self.round.added, wanted - len(self._kept()))

    def _rolled(self) -> bool:
        """Return whether the new members all work: the update is done."""
        return self.group.rolling and all(map(self._is_ready, self._kept()))

    def _retire(self, members: Iterable[Member]) -> None:
        """Mark outdated members for replacement: in their places if the group may not grow."""
        for one in list(members):
            if self.options.max_surge:
                self._mark([one], MemberState.LEAVING, "Another profile.")
            else:
                self._mark([one], MemberState.REPLACED, "Another profile.")
                self._change(self.members[one.id], profile_id=self.group.profile_id)

    def _roll_back(self) -> bool:
        """Have the former profile again, as new members do not work; return whether."""
        former = self.group.former_profile_id
        if not self.options.roll_back or former is None:
            return False
        self._set(
            profile_id=former,
            former_profile_id=None,
            failures=0,
            halted=None,
            not_before=None,
            status_reason=f"Rolled back: {self.group.halted}",
        )
        self._fit_size()
        self._roll()
        return True

    # --- creations and deletions

    def _create(self) -> None:
        wanted = [one for one in self._is(Condition.NONE) if not self._waits_for_its_own(one)]
        if not wanted:
            return
        if self.group.halted is not None:
            return
        wait = self._wait_seconds()
        if wait > 0:
            self.round.seconds = min(self.round.seconds, wait)
            return
        self.round.creates = [one.id for one in wanted[: max(0, self.room())]]

    def _waits_for_its_own(self, member: Member) -> bool:
        """Return whether what belongs to its place is not free yet; no news may say that it is."""
        why = self.facts.taken.get(member.id)
        if why is None:
            return False
        self.round.seconds = min(self.round.seconds, LOOK_SECONDS)
        if member.reason != why:
            self._change(member, reason=why)
        return True

    def room(self) -> int:
        """Return how many servers may be created now; below 0: none."""
        if self.group.deleting or self.group.halted is not None or self._wait_seconds() > 0:
            return 0
        building = len(self._is(Condition.BUILDING))
        surge = self.options.max_surge if self.group.rolling else self._spread_surge()
        # One after the other once one failed: a bad image fails five times and no more.
        at_once = 1 if self.group.failures else self.options.at_once
        return min(at_once - building, self.group.desired + surge - self._vms())

    def _wait_seconds(self) -> float:
        until = self.group.not_before
        return 0.0 if until is None else (until - self.facts.now).total_seconds()

    def _delete(self) -> None:
        """Name the servers that are to be gone and whose deletion has not begun."""
        for one in self.members.values():
            there = self.seen[one.id] != Condition.NONE and one.task_state != "deleting"
            # The end of a lock is seen.
            free = one.locked_by is None and not one.held
            if one.state != MemberState.KEPT and there and free:
                self.round.deletes.append(str(one.server_uuid))

    # --- what follows

    def _end(self) -> None:
        made = self.round
        busy = bool(made.added or made.creates or made.repairs or made.lost)
        leaving = [one for one in self.members.values() if one.state != MemberState.KEPT]
        if self.group.deleting:
            made.over = not self.members
        elif not (busy or leaving or self._is(Condition.BUILDING)):
            self._rest()
        self._status()

    def _rest(self) -> None:
        """Decide what follows where nothing is done now."""
        made, missing = self.round, self._is(Condition.NONE)
        unsettled = [one for one in self._is(Condition.WELL) if not self._is_ready(one)]
        outdated = [one for one in self._kept() if self._is_outdated(one)]
        paused = self.group.paused and bool(outdated) and not missing
        if self.group.halted is not None and missing:
            made.over, made.failed = True, self.group.halted
        elif unsettled and not paused:
            # A member that has not answered its checks makes the group due when it does.
            times = [self._ready_in(one) for one in unsettled if one.ready_at is not None]
            soonest = min(times, default=made.seconds)
            made.seconds = min(made.seconds, max(0.1, soonest))
        elif self._is_contradicted():
            made.seconds = min(made.seconds, LOOK_SECONDS)
        elif made.waits_for:
            made.over, made.failed = True, made.waits_for
        elif paused:
            made.over = True
            others = counted(len(outdated), "member is", "members are")
            self._set(status_reason=f"Paused: {others} of another profile.")
        elif not missing and not outdated and not self._is(Condition.SICK):
            # Others may work on some of them; the group is as large as desired.
            made.over = True

    def _status(self) -> None:
        """Set what a group at rest shows."""
        if not self.round.over:
            return
        working = len(self._is(Condition.WELL))
        if working < self.group.min_size or (not working and self.group.desired):
            status = Status.ERROR
        else:
            status = Status.WARNING if working < self.group.desired else Status.ACTIVE
        all_of_them = counted(self.group.desired, "member works", "members work")
        reason = self.round.failed or f"{working} of {all_of_them}."
        if self.group.status_reason.startswith(_LASTING) and not self.round.failed:
            reason = self.group.status_reason
        self._set(status=status, status_reason=reason)


#: reasons that a group at rest still shows
_LASTING = ("Rolled back", "Paused")
_MISSED_BY_NOBODY = (Condition.NONE, Condition.FAILED, Condition.SICK, Condition.LOST)
_UNWELL = (Condition.SICK, Condition.LOST, Condition.AWAY)
_WORKING = (Condition.WELL, Condition.BUSY)
#: sentences about members that a group shows
_TEXTS_MOST = 3


def _why(member: Member) -> str:
    """Return why a member is replaced."""
    if member.vm_state == VmState.ERROR:
        return "Its server was in ERROR."
    more = f": {member.health_reason}" if member.health_reason else "."
    return f"Its server was not well{more}"


def may_create(facts: Facts) -> bool:
    """Return whether one more server may be created now; looked at again where it begins."""
    return _Deciding(facts).room() > 0
