"""Which providers meet the conditions of one request group: pure, over a snapshot.

The answer is a mask: one boolean a slot, for a range of slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.errors import Invalid
from placement.request import Group, Query
from placement.snapshot import NO_SLOTS, Slots, Snapshot

Mask = NDArray[np.bool_]
#: no inventory allows more in one allocation (the API's largest integer)
_LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to serve a request; providers are slots of the snapshot."""

    amounts: Mapping[int, Mapping[str, int]]
    mappings: Mapping[str, tuple[int, ...]]


def check_names(snapshot: Snapshot, query: Query, about_traits: str = "") -> None:
    """Raise Invalid for a resource class or a trait that doesn't exist.

    `about_traits` begins the sentence about traits.
    """
    asked = {name for group in query.groups for name in group.resources}
    for name in sorted(asked - snapshot.resource_classes):
        raise Invalid(
            f"Invalid resource class in resources parameter: No such resource class {name}."
        )
    traits = set(query.root_required | query.root_forbidden)
    for group in query.groups:
        traits |= group.forbidden.union(*group.required)
    unknown = traits - snapshot.traits
    if unknown:
        raise Invalid(f"{about_traits}No such trait(s): {', '.join(sorted(unknown))}.")


class Span:
    """A range of slots of a snapshot, and what of it meets a condition."""

    def __init__(self, snapshot: Snapshot, start: int = 0, stop: int | None = None) -> None:
        self.snapshot = snapshot
        self.start = start
        self.stop = len(snapshot.providers) if stop is None else stop

    def alive(self) -> Mask:
        """Return where there is a provider."""
        mask: Mask = self.snapshot.root_of[self.start : self.stop] >= 0
        return mask

    def having(self, index: Mapping[str, Slots], names: Iterable[str]) -> Mask:
        """Return where any of `names` is present."""
        mask = np.zeros(self.stop - self.start, np.bool_)
        for name in names:
            slots = index.get(name, NO_SLOTS)
            first, last = np.searchsorted(slots, (self.start, self.stop))
            mask[slots[first:last] - self.start] = True
        return mask

    def roomy(self, name: str, amount: int) -> Mask:
        """Return where the inventory of class `name` takes `amount` more."""
        column = self.snapshot.columns.get(name)
        if column is None or amount > _LARGEST:
            return np.zeros(self.stop - self.start, np.bool_)
        least, most, step = (numbers[self.start : self.stop] for numbers in column[:3])
        mask = (least <= amount) & (most >= amount)
        if amount > 1 or step.max(initial=1) > 1:
            mask &= amount % step == 0
        return mask

    def takes(self, name: str, amount: int) -> Mask:
        """Return where there is room for `amount`, whatever its units."""
        column = self.snapshot.columns.get(name)
        if column is None or amount > _LARGEST:
            return np.zeros(self.stop - self.start, np.bool_)
        mask: Mask = column.most[self.start : self.stop] >= amount
        return mask

    def in_tree(self, uuid: str) -> Mask:
        """Return where the tree of provider `uuid` is; nowhere when it isn't known."""
        slot = self.snapshot.slot_of_uuid.get(uuid)
        if slot is None:
            return np.zeros(self.stop - self.start, np.bool_)
        mask: Mask = self.snapshot.root_of[self.start : self.stop] == self.snapshot.root_of[slot]
        return mask

    def meeting(self, group: Group) -> Mask:
        """Return where all the group's conditions on traits, aggregates and tree are met."""
        mask = self.alive()
        for names in group.required:
            mask &= self.having(self.snapshot.by_trait, names)
        for uuids in group.member_of:
            mask &= self.having(self.snapshot.by_aggregate, uuids)
        if group.forbidden:
            mask &= ~self.having(self.snapshot.by_trait, group.forbidden)
        if group.forbidden_aggregates:
            mask &= ~self.having(self.snapshot.by_aggregate, group.forbidden_aggregates)
        if group.in_tree is not None:
            mask &= self.in_tree(group.in_tree)
        return mask

    def serving(self, group: Group) -> Mask:
        """Return where one provider alone serves the whole group."""
        mask = self.meeting(group)
        for name, amount in group.resources.items():
            mask &= self.roomy(name, amount)
        return mask

    def accepted(self, query: Query) -> Mask:
        """Return where a root meets `root_required`."""
        mask: Mask = self.snapshot.root_of[self.start : self.stop] == np.arange(
            self.start, self.stop
        )
        for trait in query.root_required:
            mask &= self.having(self.snapshot.by_trait, (trait,))
        if query.root_forbidden:
            mask &= ~self.having(self.snapshot.by_trait, query.root_forbidden)
        return mask


def matching(snapshot: Snapshot, group: Group) -> list[int]:
    """Return the slots of the providers that alone serve the whole group, in order."""
    found: list[int] = np.flatnonzero(Span(snapshot).serving(group)).tolist()
    return found
