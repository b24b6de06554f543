"""Candidates against a slow, obvious reference, on random providers and requests."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import Invalid
from placement.candidates import candidates
from placement.request import Group, Query
from placement.snapshot import SHARING, Inventory, Provider, Snapshot

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
TRAITS = ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C")
AGGREGATES = ("agg-1", "agg-2")


def a_stock(total: int = 8, **values: int | float) -> Inventory:
    fields = {
        "total": total,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": 1000,
        "step_size": 1,
        "allocation_ratio": 1.0,
        "used": 0,
    } | values
    return Inventory(**fields)  # type: ignore[arg-type]


def a_provider(number: int, root: int | None = None, **values: object) -> Provider:
    fields: dict[str, object] = {
        "id": number,
        "uuid": f"uuid-{number}",
        "name": f"node-{number}",
        "parent_id": None,
        "root_id": number if root is None else root,
        "stocks": {"VCPU": a_stock()},
    }
    return Provider(**(fields | values))  # type: ignore[arg-type]


def a_snapshot(*providers: Provider) -> Snapshot:
    return Snapshot().changed(providers).named([*TRAITS, SHARING], CLASSES)


def uuids(snapshot: Snapshot, query: Query) -> list[list[str]]:
    found = candidates(snapshot, query)
    return [sorted(snapshot.at(slot).uuid for slot in one.amounts) for one in found.requests]


stocks = st.builds(
    Inventory,
    total=st.integers(1, 16),
    reserved=st.integers(0, 4),
    min_unit=st.integers(1, 3),
    max_unit=st.integers(1, 20),
    step_size=st.integers(1, 3),
    allocation_ratio=st.sampled_from([0.5, 1.0, 1.5, 16.0]),
    used=st.integers(0, 20),
)
names = st.frozensets(st.sampled_from(TRAITS))
groups = st.frozensets(st.sampled_from(AGGREGATES))


@st.composite
def flat_providers(draw: st.DrawFn) -> list[Provider]:
    count = draw(st.integers(0, 7))
    return [
        a_provider(
            number,
            stocks=draw(st.dictionaries(st.sampled_from(CLASSES), stocks)),
            traits=draw(names),
            aggregates=draw(groups),
        )
        for number in range(1, count + 1)
    ]


@st.composite
def requests(draw: st.DrawFn) -> Group:
    return Group(
        resources=draw(st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 12), min_size=1)),
        required=tuple(
            draw(st.lists(st.frozensets(st.sampled_from(TRAITS), min_size=1), max_size=2))
        ),
        forbidden=draw(names),
        member_of=tuple(
            draw(st.lists(st.frozensets(st.sampled_from(AGGREGATES), min_size=1), max_size=2))
        ),
        forbidden_aggregates=draw(groups),
        in_tree=draw(st.none() | st.sampled_from(["uuid-1", "uuid-2", "uuid-none"])),
    )


def serves(provider: Provider, group: Group) -> bool:
    """The definition, word by word."""
    for name, amount in group.resources.items():
        stock = provider.stocks.get(name)
        if stock is None:
            return False
        capacity = (stock.total - stock.reserved) * stock.allocation_ratio
        if stock.used + amount > capacity or amount % stock.step_size:
            return False
        if not stock.min_unit <= amount <= stock.max_unit:
            return False
    return (
        all(provider.traits & wanted for wanted in group.required)
        and not provider.traits & group.forbidden
        and all(provider.aggregates & wanted for wanted in group.member_of)
        and not provider.aggregates & group.forbidden_aggregates
        and group.in_tree in (None, provider.uuid)
    )


@given(flat_providers(), requests(), st.none() | st.integers(1, 4))
def test_flat_providers_are_those_that_serve_alone(
    providers: list[Provider], group: Group, limit: int | None
) -> None:
    snapshot = a_snapshot(*providers)
    expected = [[one.uuid] for one in providers if serves(one, group)]
    assert uuids(snapshot, Query((group,), limit=limit)) == expected[:limit]


@given(flat_providers(), requests(), st.integers(1, 4), st.integers())
def test_a_random_choice_is_a_choice_among_all(
    providers: list[Provider], group: Group, limit: int, seed: int
) -> None:
    snapshot = a_snapshot(*providers)
    everything = candidates(snapshot, Query((group,))).requests
    some = candidates(snapshot, Query((group,), limit=limit), sample=random.Random(seed)).requests
    assert len(some) == min(limit, len(everything))
    assert all(one in everything for one in some)


@st.composite
def trees(draw: st.DrawFn) -> list[Provider]:
    """Roots with children; some roots share through aggregates."""
    providers: list[Provider] = []
    for number in range(1, draw(st.integers(1, 6)) + 1):
        parent = draw(st.sampled_from([None, *providers]))
        traits = draw(names)
        if parent is None and draw(st.booleans()):
            traits |= {SHARING}
        providers.append(
            a_provider(
                number,
                parent_id=parent.id if parent else None,
                root=parent.root_id if parent else None,
                stocks=draw(st.dictionaries(st.sampled_from(CLASSES), stocks)),
                traits=traits,
                aggregates=draw(groups),
            )
        )
    return providers


def ways(providers: list[Provider], group: Group) -> set[frozenset[tuple[str, str]]]:
    """Every assignment of classes to providers that meets the definition, by brute force."""
    root_of = {one.id: one.root_id for one in providers}
    by_id = {one.id: one for one in providers}
    found = set()
    for anchor in {one.root_id for one in providers}:
        for chosen in itertools.product(providers, repeat=len(group.resources)):
            givers = dict(zip(group.resources, chosen, strict=True))
            if _is_way(by_id, root_of, anchor, givers, group):
                found.add(frozenset((name, one.uuid) for name, one in givers.items()))
    return found


def _is_way(
    by_id: dict[int, Provider],
    root_of: dict[int, int],
    anchor: int,
    givers: dict[str, Provider],
    group: Group,
) -> bool:
    for name, one in givers.items():
        room = Group(resources={name: group.resources[name]})
        if not serves(one, room):
            return False
        if one.root_id != anchor:
            members = [other for other in by_id.values() if other.aggregates & one.aggregates]
            shared = SHARING in one.traits and anchor in {root_of[m.id] for m in members}
            in_aggregates = all(one.aggregates & wanted for wanted in group.member_of)
            if not shared or not in_aggregates or group.in_tree is not None:
                return False
        both = (one.aggregates, by_id[anchor].aggregates)
        if group.member_of and not any(
            all(aggregates & wanted for wanted in group.member_of) for aggregates in both
        ):
            return False
        if any(aggregates & group.forbidden_aggregates for aggregates in both):
            return False
        if group.in_tree is not None:
            inside = [o for o in by_id.values() if o.uuid == group.in_tree]
            if not inside or inside[0].root_id != one.root_id:
                return False
    together = frozenset().union(*(one.traits for one in givers.values()))
    return not together & group.forbidden and all(together & want for want in group.required)


@given(trees(), requests())
def test_trees_are_searched_completely(providers: list[Provider], group: Group) -> None:
    snapshot = a_snapshot(*providers)
    found = {
        frozenset(
            (name, snapshot.at(slot).uuid)
            for slot, resources in one.amounts.items()
            for name in resources
        )
        for one in candidates(snapshot, Query((group,))).requests
    }
    if snapshot.is_flat:
        assert found == {
            frozenset((name, one.uuid) for name in group.resources)
            for one in providers
            if serves(one, group)
        }
    else:
        assert found == ways(providers, group)


@given(trees(), requests())
def test_who_knows_no_trees_sees_one_provider_of_each(
    providers: list[Provider], group: Group
) -> None:
    snapshot = a_snapshot(*providers)
    found = candidates(snapshot, Query((group,), nested=False))
    for one in found.requests:
        roots = [snapshot.at(slot).root_id for slot in one.amounts]
        assert len(roots) == len(set(roots))
    assert set(found.summaries) == {slot for one in found.requests for slot in one.amounts}


def test_groups_with_a_name_need_one_provider_each() -> None:
    parent = a_provider(1)
    children = [a_provider(n, root=1, parent_id=1, stocks={"DISK_GB": a_stock(4)}) for n in (2, 3)]
    snapshot = a_snapshot(parent, *children)
    disks = (Group("1", {"DISK_GB": 3}), Group("2", {"DISK_GB": 3}))
    query = Query((Group(resources={"VCPU": 1}), *disks), isolate=True)
    assert uuids(snapshot, query) == [["uuid-1", "uuid-2", "uuid-3"]] * 2
    mappings = [one.mappings["1"] for one in candidates(snapshot, query).requests]
    assert {snapshot.at(slot).uuid for slots in mappings for slot in slots} == {
        "uuid-2",
        "uuid-3",
    }


def test_what_two_groups_take_from_one_provider_must_fit_together() -> None:
    snapshot = a_snapshot(a_provider(1, stocks={"VCPU": a_stock(4)}))
    query = Query((Group("1", {"VCPU": 3}), Group("2", {"VCPU": 3})))
    assert uuids(snapshot, query) == []
    assert uuids(snapshot, Query((Group("1", {"VCPU": 2}), Group("2", {"VCPU": 2})))) == [
        ["uuid-1"]
    ]


def test_same_subtree_needs_an_ancestor_among_them() -> None:
    numa = [a_provider(n, root=1, parent_id=1, stocks={"VCPU": a_stock()}) for n in (2, 3)]
    cards = [a_provider(n, root=1, parent_id=n - 2, stocks={"DISK_GB": a_stock()}) for n in (4, 5)]
    snapshot = a_snapshot(a_provider(1, stocks={}), *numa, *cards)
    groups = (Group("_CPU", {"VCPU": 1}), Group("_CARD", {"DISK_GB": 1}))
    together = Query(groups, same_subtrees=(frozenset({"_CPU", "_CARD"}),))
    assert uuids(snapshot, together) == [["uuid-2", "uuid-4"], ["uuid-3", "uuid-5"]]
    assert len(uuids(snapshot, Query(groups))) == 4


def test_root_required_looks_at_the_root_only() -> None:
    providers = [
        a_provider(1, traits=frozenset({"CUSTOM_A"})),
        a_provider(2, root=1, parent_id=1),
        a_provider(3),
    ]
    snapshot = a_snapshot(*providers)
    group = (Group(resources={"VCPU": 1}),)
    required = Query(group, root_required=frozenset({"CUSTOM_A"}))
    assert uuids(snapshot, required) == [["uuid-1"], ["uuid-2"]]
    forbidden = Query(group, root_forbidden=frozenset({"CUSTOM_A"}))
    assert uuids(snapshot, forbidden) == [["uuid-3"]]


@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        (Group(resources={"PONIES": 1}), "No such resource class PONIES."),
        (
            Group(resources={"VCPU": 1}, forbidden=frozenset({"CUSTOM_NO"})),
            "No such trait(s): CUSTOM_NO.",
        ),
        (
            Group(resources={"VCPU": 1}, required=(frozenset({"CUSTOM_NO"}),)),
            "No such trait(s): CUSTOM_NO.",
        ),
    ],
)
def test_unknown_names_are_reported(group: Group, sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence.replace("(", r"\(").replace(")", r"\)")):
        candidates(a_snapshot(a_provider(1)), Query((group,)))


def test_the_bound_on_candidates_counts_before_the_limit() -> None:
    snapshot = a_snapshot(*(a_provider(number) for number in range(1, 6)))
    query = Query((Group(resources={"VCPU": 1}),))
    assert len(candidates(snapshot, query, most=3).requests) == 3
    assert len(candidates(snapshot, query, most=0).requests) == 0
