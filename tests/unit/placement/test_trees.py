"""Whole queries over trees and sharing providers, against a slow, obvious reference."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from placement.candidates import candidates
from placement.request import Group, Query
from placement.snapshot import SHARING, Provider, Snapshot
from tests.unit.placement.test_candidates import (
    AGGREGATES,
    CLASSES,
    TRAITS,
    a_provider,
    a_snapshot,
    a_stock,
    names,
    stocks,
)

#: (provider, class) → amount, and group → providers
Way = tuple[frozenset[tuple[str, str, int]], frozenset[tuple[str, frozenset[str]]]]
roomy = st.builds(a_stock, st.integers(2, 8)) | stocks


@st.composite
def worlds(draw: st.DrawFn) -> list[Provider]:
    """Trees of up to seven providers; some providers share through aggregates."""
    providers: list[Provider] = []
    for number in range(1, draw(st.integers(1, 7)) + 1):
        parent = draw(st.sampled_from([None, *providers]))
        traits = draw(names) | (frozenset({SHARING}) if draw(st.integers(0, 3)) == 0 else set())
        providers.append(
            a_provider(
                number,
                parent_id=parent.id if parent else None,
                root=parent.root_id if parent else None,
                stocks=draw(st.dictionaries(st.sampled_from(CLASSES), roomy, max_size=3)),
                traits=frozenset(traits),
                aggregates=frozenset(draw(st.sets(st.sampled_from(AGGREGATES)))),
            )
        )
    return providers


@st.composite
def groups(draw: st.DrawFn, suffix: str) -> Group:
    few = st.integers(0, 4).map(lambda number: number == 0)
    some_traits = st.frozensets(st.sampled_from(TRAITS), min_size=1, max_size=2)
    some_groups = st.frozensets(st.sampled_from(AGGREGATES), min_size=1)
    amounts = st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 4), min_size=1, max_size=2)
    return Group(
        suffix=suffix,
        resources=draw(amounts),
        required=(draw(some_traits),) if draw(few) else (),
        forbidden=draw(some_traits) if draw(few) else frozenset(),
        member_of=(draw(some_groups),) if draw(few) else (),
        forbidden_aggregates=draw(some_groups) if draw(few) else frozenset(),
        in_tree=draw(st.sampled_from(["uuid-1", "uuid-3", "none"])) if draw(few) else None,
    )


@st.composite
def queries(draw: st.DrawFn) -> Query:
    suffixes = draw(st.sampled_from([("",), ("_A",), ("", "_A"), ("_A", "_B"), ("", "_A", "_B")]))
    named = [suffix for suffix in suffixes if suffix]
    together = (frozenset(named),) if len(named) > 1 and draw(st.booleans()) else ()
    few = st.integers(0, 4).map(lambda number: number == 0)
    return Query(
        groups=tuple(draw(groups(suffix)) for suffix in suffixes),
        isolate=draw(st.booleans()),
        root_required=draw(names) if draw(few) else frozenset(),
        root_forbidden=draw(names) if draw(few) else frozenset(),
        same_subtrees=together,
    )


class Reference:
    """The definition, word by word, over lists of providers."""

    def __init__(self, providers: Sequence[Provider]) -> None:
        self.all = providers
        self.by_id = {one.id: one for one in providers}

    def takes(self, one: Provider, name: str, amount: int) -> bool:
        stock = one.stocks.get(name)
        return (
            stock is not None
            and stock.used + amount <= int((stock.total - stock.reserved) * stock.allocation_ratio)
            and stock.min_unit <= amount <= stock.max_unit
            and amount % stock.step_size == 0
        )

    def serves_anchor(self, one: Provider, anchor: int) -> bool:
        if one.root_id == anchor:
            return True
        members = [other for other in self.all if other.aggregates & one.aggregates]
        return SHARING in one.traits and anchor in {member.root_id for member in members}

    def in_tree(self, one: Provider, uuid: str | None) -> bool:
        return uuid is None or any(
            other.uuid == uuid and other.root_id == one.root_id for other in self.all
        )

    def named(self, group: Group, anchor: int) -> Iterator[dict[str, Provider]]:
        for one in self.all:
            if (
                self.serves_anchor(one, anchor)
                and all(self.takes(one, n, a) for n, a in group.resources.items())
                and all(one.traits & wanted for wanted in group.required)
                and not one.traits & group.forbidden
                and all(one.aggregates & wanted for wanted in group.member_of)
                and not one.aggregates & group.forbidden_aggregates
                and self.in_tree(one, group.in_tree)
            ):
                yield dict.fromkeys(group.resources, one)

    def unnamed(self, group: Group, anchor: int) -> Iterator[dict[str, Provider]]:
        for chosen in itertools.product(self.all, repeat=len(group.resources)):
            givers = dict(zip(group.resources, chosen, strict=True))
            traits = frozenset().union(*(one.traits for one in chosen))
            if (
                all(self.gives(one, n, group, anchor) for n, one in givers.items())
                and all(traits & wanted for wanted in group.required)
                and not traits & group.forbidden
            ):
                yield givers

    def gives(self, one: Provider, name: str, group: Group, anchor: int) -> bool:
        root = self.by_id[anchor]
        inside = one.root_id == anchor
        either = [one.aggregates, root.aggregates] if inside else [one.aggregates]
        return (
            self.takes(one, name, group.resources[name])
            and self.serves_anchor(one, anchor)
            and (inside or group.in_tree is None)
            and self.in_tree(one, group.in_tree)
            and (
                not group.member_of
                or any(all(some & want for want in group.member_of) for some in either)
            )
            and not (one.aggregates | root.aggregates) & group.forbidden_aggregates
        )

    def line(self, one: Provider) -> set[int]:
        above = {one.id}
        while one.parent_id is not None:
            one = self.by_id[one.parent_id]
            above.add(one.id)
        return above

    def ways(self, query: Query) -> set[Way]:
        found: set[Way] = set()
        for root in self.all:
            if root.parent_id is not None or not query.root_required <= root.traits:
                continue
            if query.root_forbidden & root.traits:
                continue
            options = [
                list((self.named if group.suffix else self.unnamed)(group, root.id))
                for group in query.groups
            ]
            for chosen in itertools.product(*options):
                if self.allowed(query, chosen):
                    found.add(self.way(query, chosen))
        return found

    def allowed(self, query: Query, chosen: Sequence[dict[str, Provider]]) -> bool:
        alone = [
            next(iter(givers.values())).id
            for group, givers in zip(query.groups, chosen, strict=True)
            if group.suffix
        ]
        if query.isolate and len(set(alone)) != len(alone):
            return False
        for suffixes in query.same_subtrees:
            some = {
                one.id: one
                for group, givers in zip(query.groups, chosen, strict=True)
                if group.suffix in suffixes
                for one in givers.values()
            }
            if not any(all(top in self.line(o) for o in some.values()) for top in some):
                return False
        taken: Counter[tuple[int, str]] = Counter()
        for group, givers in zip(query.groups, chosen, strict=True):
            for name, one in givers.items():
                taken[one.id, name] += group.resources[name]
        return all(amount <= self.by_id[i].stocks[n].room for (i, n), amount in taken.items())

    def way(self, query: Query, chosen: Sequence[dict[str, Provider]]) -> Way:
        taken: Counter[tuple[str, str]] = Counter()
        serving = set()
        for group, givers in zip(query.groups, chosen, strict=True):
            serving.add((group.suffix, frozenset(one.uuid for one in givers.values())))
            for name, one in givers.items():
                taken[one.uuid, name] += group.resources[name]
        return frozenset((*key, n) for key, n in taken.items()), frozenset(serving)


def found_in(snapshot: Snapshot, query: Query, **options: object) -> list[Way]:
    return [
        (
            frozenset(
                (snapshot.at(slot).uuid, name, amount)
                for slot, resources in one.amounts.items()
                for name, amount in resources.items()
            ),
            frozenset(
                (suffix, frozenset(snapshot.at(slot).uuid for slot in slots))
                for suffix, slots in one.mappings.items()
            ),
        )
        for one in candidates(snapshot, query, **options).requests  # type: ignore[arg-type]
    ]


@settings(max_examples=3 * settings().max_examples)
@given(worlds(), queries())
def test_every_way_is_found_once(providers: list[Provider], query: Query) -> None:
    found = found_in(a_snapshot(*providers), query)
    assert len(found) == len(set(found))
    assert set(found) == Reference(providers).ways(query)


@given(worlds(), queries(), st.integers(1, 4), st.integers())
def test_a_limit_is_a_beginning_and_an_order_is_kept(
    providers: list[Provider], query: Query, limit: int, seed: int
) -> None:
    snapshot = a_snapshot(*providers)
    everything = found_in(snapshot, query)
    assert everything == found_in(a_snapshot(*providers), query)
    cut = Query(**{n: getattr(query, n) for n in Query.__slots__} | {"limit": limit})
    assert found_in(snapshot, cut) == everything[:limit]
    assert found_in(snapshot, query, most=limit) == everything[:limit]
    breadth = found_in(snapshot, query, breadth=True)
    assert sorted(map(repr, map(sorted_way, breadth))) == sorted(
        map(repr, map(sorted_way, everything))
    )
    some = found_in(snapshot, cut, sample=random.Random(seed))
    assert len(some) == min(limit, len(everything))
    assert set(some) <= set(everything)


def sorted_way(way: Way) -> object:
    return sorted(way[0]), sorted((suffix, sorted(uuids)) for suffix, uuids in way[1])


def test_breadth_gives_one_of_every_tree_first() -> None:
    stock = {"VCPU": a_stock(4)}
    trees = [
        a_provider(3 * tree + part, root=3 * tree, parent_id=3 * tree if part else None)
        if part
        else a_provider(3 * tree, stocks={})
        for tree in (1, 2)
        for part in (0, 1, 2)
    ]
    assert trees[1].stocks.keys() == stock.keys()
    query = Query((Group(resources={"VCPU": 1}),), limit=2)
    snapshot = a_snapshot(*trees)
    depth = [snapshot.at(s).uuid for o in candidates(snapshot, query).requests for s in o.amounts]
    wide = candidates(snapshot, query, breadth=True).requests
    assert depth == ["uuid-4", "uuid-5"]
    assert [snapshot.at(s).uuid for one in wide for s in one.amounts] == ["uuid-4", "uuid-7"]


def test_a_limit_ends_the_search_of_very_many_combinations() -> None:
    """Thirty alike children and six groups: 30⁶ ways; ten are wanted."""
    children = [a_provider(n, root=1, parent_id=1) for n in range(2, 32)]
    snapshot = a_snapshot(a_provider(1, stocks={}), *children)
    groups = tuple(Group(f"_{n}", {"VCPU": 1}) for n in range(6))
    assert len(candidates(snapshot, Query(groups, limit=10, isolate=True)).requests) == 10
    impossible = tuple(Group(f"_{n}", {"VCPU": 5}) for n in range(2))
    together = Query((*impossible, Group("_c", {"DISK_GB": 1})), limit=10)
    assert candidates(snapshot, together).requests == []
