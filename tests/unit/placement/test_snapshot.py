"""A snapshot that was changed step by step equals a snapshot made at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from placement.snapshot import Inventory, Provider, Snapshot

CLASSES = ("VCPU", "MEMORY_MB")
stocks = st.builds(
    Inventory,
    total=st.integers(1, 9),
    reserved=st.just(0),
    min_unit=st.just(1),
    max_unit=st.integers(1, 9),
    step_size=st.integers(1, 2),
    allocation_ratio=st.just(1.5),
    used=st.integers(0, 9),
)
numbers = st.integers(1, 5)


@st.composite
def providers(draw: st.DrawFn) -> Provider:
    number = draw(numbers)
    return Provider(
        id=number,
        uuid=f"uuid-{number}",
        name=f"name-{number}",
        parent_id=draw(st.none() | st.just(9)),
        root_id=draw(st.sampled_from([number, 9])),
        stocks=draw(st.dictionaries(st.sampled_from(CLASSES), stocks)),
        traits=draw(st.frozensets(st.sampled_from(["CUSTOM_A", "CUSTOM_B"]))),
        aggregates=draw(st.frozensets(st.sampled_from(["one", "two"]))),
    )


steps = st.lists(
    st.one_of(
        st.tuples(st.just("changed"), st.lists(providers(), max_size=3), st.lists(numbers)),
        st.tuples(
            st.just("used"),
            st.dictionaries(st.tuples(numbers, st.sampled_from(CLASSES)), st.integers(0, 12)),
        ),
    ),
    max_size=8,
)


def seen(snapshot: Snapshot) -> Any:
    """Everything there is to ask a snapshot, without slot numbers."""
    by_slot = {slot: snapshot.at(slot) for slot in snapshot.slots.values()}

    def ids(slots: Iterable[int]) -> set[int]:
        return {by_slot[int(slot)].id for slot in slots}

    return {
        "providers": {one.id: one for one in by_slot.values()},
        "uuids": {u: by_slot[slot].id for u, slot in snapshot.slot_of_uuid.items()},
        "traits": {name: ids(slots) for name, slots in snapshot.by_trait.items()},
        "aggregates": {name: ids(slots) for name, slots in snapshot.by_aggregate.items()},
        "roots": {one.id: ids([snapshot.root_of[slot]]) for slot, one in by_slot.items()},
        "trees": {by_slot[root].id: ids(slots) for root, slots in snapshot.trees.items()},
        "gone": {slot for slot, root in enumerate(snapshot.root_of) if root < 0} & set(by_slot),
        "columns": {
            (name, by_slot[slot].id): (column.least[slot], column.most[slot], column.step[slot])
            for name, column in snapshot.columns.items()
            for slot in by_slot
            if column.most[slot] >= 0
        },
    }


def expected_columns(everything: dict[int, Provider]) -> dict[Any, Any]:
    return {
        (name, one.id): (stock.min_unit, stock.room, stock.step_size)
        for one in everything.values()
        for name, stock in one.stocks.items()
        if stock.room >= 0
    }


@given(steps)
def test_changes_lead_to_the_same_picture_as_a_fresh_start(changes: list[Any]) -> None:
    snapshot = Snapshot()
    now: dict[int, Provider] = {}
    for kind, given_now, *more in changes:
        before = seen(snapshot)
        if kind == "changed":
            after = snapshot.changed(given_now, more[0])
            for number in more[0]:
                now.pop(number, None)
            now |= {one.id: one for one in given_now}
        else:
            usages = {}
            for (number, name), used in given_now.items():
                if number in now and name in now[number].stocks:
                    one = now[number]
                    stock = usages[number, name] = one.stocks[name]._replace(used=used)
                    fresh = {**one.stocks, name: stock}
                    now[number] = Provider(
                        one.id,
                        one.uuid,
                        one.name,
                        one.parent_id,
                        one.root_id,
                        fresh,
                        one.traits,
                        one.aggregates,
                    )
            after = snapshot.used({**usages, (99, "VCPU"): Inventory(1, 0, 1, 1, 1, 1.0, 0)})
        assert seen(snapshot) == before, "a picture was changed in place"
        snapshot = after
    fresh_start = seen(Snapshot().changed(now.values()))
    assert seen(snapshot) == fresh_start
    assert fresh_start["columns"] == expected_columns(now)


def test_what_was_rendered_of_a_provider_goes_with_its_numbers() -> None:
    stock = Inventory(8, 0, 1, 8, 1, 1.0, 0)
    one = Provider(1, "uuid-1", "one", None, 1, {"VCPU": stock})
    two = Provider(2, "uuid-2", "two", None, 2, {"VCPU": stock})
    snapshot = Snapshot().changed([one, two])
    for slot in (0, 1):
        snapshot.at(slot).rendered["shape"] = "text"
    later = snapshot.used({(1, "VCPU"): stock._replace(used=3)})
    assert later.at(0).rendered == {}
    assert later.at(1).rendered == {"shape": "text"}
    assert snapshot.at(0).rendered == {"shape": "text"}


def test_capacity_is_cut_off_and_room_is_bounded_by_max_unit() -> None:
    stock = Inventory(7, 2, 1, 6, 1, 1.5, 1)
    assert stock.capacity == 7
    assert stock.room == 6
    assert stock._replace(used=9).room == -2
