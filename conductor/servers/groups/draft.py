"""A group and its members as one look finds and changes them. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from common.resources.groups import MemberState
from conductor.servers.groups.seen import Condition, Facts, Round, condition_in
from conductor.store.groups.groups import Member


class Draft:
    """What is known of a group in one look; members are replaced by what they become."""

    def __init__(self, facts: Facts) -> None:
        self.facts, self.round = facts, Round()
        self.group, self.options = facts.group, facts.options
        self.members = {one.id: one for one in facts.members}
        self.seen = {one.id: condition_in(facts, one) for one in facts.members}

    def _kept(self) -> list[Member]:
        """Return the members that are to stay, by their indexes."""
        return [one for one in self.members.values() if one.state != MemberState.LEAVING]

    def _is(self, *wanted: Condition) -> list[Member]:
        return [one for one in self._kept() if self.seen[one.id] in wanted]

    def _is_ready(self, member: Member) -> bool:
        """Return whether a member works, and has worked for long enough."""
        if member.state != MemberState.KEPT or self.seen[member.id] != Condition.WELL:
            return False
        if member.ready_at is None:
            return False
        return self._ready_in(member) <= 0

    def _ready_in(self, member: Member) -> float:
        """Return the seconds until a member that works counts."""
        if member.ready_at is None:
            return float(self.options.min_ready_seconds)
        since = (self.facts.now - member.ready_at).total_seconds()
        return self.options.min_ready_seconds - since

    def _vms(self) -> int:
        """Return how many servers there are, those that are being deleted included."""
        return sum(found != Condition.NONE for found in self.seen.values())

    def _is_outdated(self, member: Member) -> bool:
        return self.group.rolling and member.profile_id != self.group.profile_id

    def _change(self, member: Member, **values: object) -> Member:
        self.round.changed.setdefault(member.id, {}).update(values)
        changed = dataclasses.replace(member, **values)  # type: ignore[arg-type]
        self.members[member.id] = changed
        return changed

    def _mark(self, members: Iterable[Member], state: MemberState, reason: str = "") -> None:
        for one in members:
            if self.seen[one.id] == Condition.NONE:
                # Without a server it is gone, or gets a new one, at once.
                if state == MemberState.LEAVING:
                    self._drop(one)
            elif one.state != state:
                self._change(one, state=state, reason=reason or one.reason, ready_at=None)

    def _set(self, **values: object) -> None:
        """Change columns of the group."""
        values = {
            name: value for name, value in values.items() if getattr(self.group, name) != value
        }
        self.round.group.update(values)
        self.group = dataclasses.replace(self.group, **values)  # type: ignore[arg-type]

    def _drop(self, member: Member) -> None:
        self.round.removed.append(member.id)
        del self.members[member.id]
