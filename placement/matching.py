"""Which providers meet the conditions of one request group: pure, over a snapshot."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from common.errors import Invalid
from placement.request import Group, Query
from placement.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to serve a request; providers are slots of the snapshot."""

    amounts: Mapping[int, Mapping[str, int]]
    mappings: Mapping[str, frozenset[int]]


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


def matching(snapshot: Snapshot, group: Group) -> list[int]:
    """Return the slots of the providers that alone serve the whole group, in order."""
    slots = having(snapshot, group)
    for name, amount in group.resources.items():
        if not slots:
            break
        slots = with_room(snapshot, name, amount, slots)
    return list(slots)


def having(snapshot: Snapshot, group: Group) -> Sequence[int]:
    """Return the slots that meet the group's conditions on traits, aggregates and tree."""
    chosen: frozenset[int] | None = None
    for wanted, index in itertools.chain(
        ((names, snapshot.by_trait) for names in group.required),
        ((uuids, snapshot.by_aggregate) for uuids in group.member_of),
    ):
        among = any_of(index, wanted)
        chosen = among if chosen is None else chosen & among
    if group.in_tree is not None:
        tree = tree_of(snapshot, group.in_tree)
        chosen = tree if chosen is None else chosen & tree
    barred = any_of(snapshot.by_trait, group.forbidden) | any_of(
        snapshot.by_aggregate, group.forbidden_aggregates
    )
    if chosen is not None:
        return sorted(chosen - barred)
    if barred:
        return [slot for slot in snapshot.slots.values() if slot not in barred]
    if len(snapshot.slots) == len(snapshot.providers):
        return range(len(snapshot.providers))
    return list(snapshot.slots.values())


def with_room(snapshot: Snapshot, name: str, amount: int, slots: Iterable[int]) -> list[int]:
    """Return those of `slots` whose inventory of class `name` takes `amount` more."""
    column = snapshot.columns.get(name)
    if column is None:
        return []
    least, most, step = column
    return [
        slot for slot in slots if least[slot] <= amount <= most[slot] and not amount % step[slot]
    ]


def any_of(index: Mapping[str, frozenset[int]], names: Iterable[str]) -> frozenset[int]:
    """Return the union of the index's sets under `names`."""
    return frozenset().union(*(index[name] for name in names if name in index))


def tree_of(snapshot: Snapshot, uuid: str) -> frozenset[int]:
    """Return the slots of the tree that provider `uuid` is in; none when it isn't known."""
    slot = snapshot.slot_of_uuid.get(uuid)
    if slot is None:
        return frozenset()
    return snapshot.by_root[snapshot.at(slot).root_id]


def accepted_roots(snapshot: Snapshot, query: Query) -> frozenset[int] | None:
    """Return the roots that `root_required` leaves, as slots; None: all."""
    if not query.root_required and not query.root_forbidden:
        return None
    roots = frozenset(snapshot.slots[root] for root in snapshot.by_root)
    for trait in query.root_required:
        roots &= snapshot.by_trait.get(trait, frozenset())
    return roots - any_of(snapshot.by_trait, query.root_forbidden)
