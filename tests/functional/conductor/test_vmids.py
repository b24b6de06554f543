"""VMIDs are reserved once, however many ask at the same time; so are templates."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from common import clock
from common.errors import Unavailable
from common.messages.facts import HostFacts, StorageFacts, VmFacts
from conductor.store.images import templates
from conductor.store.servers import vmids
from conductor.store.transactions import Store
from db import engine, schema
from tests.functional.db.conftest import postgres_server, postgres_url  # noqa: F401

pytestmark = pytest.mark.sampled(2)

BAND = range(100_000, 100_040)
THREADS = 8


@pytest.fixture(params=["sqlite", "postgresql"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Store]]:
    """Two conductors on one database, which knows of two clusters."""
    url = f"sqlite:///{tmp_path}/cloud.sqlite"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
    engines = [(engine.writer(url), engine.reader(url)) for _ in range(2)]
    schema.metadata.create_all(engines[0][0])
    made = [Store(*pair) for pair in engines]
    for cluster in ("c1", "c2"):
        made[0].run(lambda c, name=cluster: vmids.set_band(c, name, BAND[0], BAND[-1]))
    yield made
    for pair in engines:
        for one in pair:
            one.dispose()


def reserve(store: Store, cluster: str = "c1") -> int:
    return store.run(lambda c: vmids.reserve(c, cluster, "server", 1))


def test_no_id_is_given_twice_and_none_outside_the_band(stores: list[Store]) -> None:
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        given = list(pool.map(lambda number: reserve(stores[number % 2]), range(len(BAND))))
    assert sorted(given) == list(BAND)
    with pytest.raises(Unavailable, match="used up"):
        reserve(stores[0])
    # Another cluster has ids of its own.
    assert reserve(stores[0], "c2") == BAND[0]


def test_what_is_free_again_is_given_as_late_as_possible_and_what_is_in_doubt_not_at_all(
    stores: list[Store],
) -> None:
    store = stores[0]
    first, second = reserve(store), reserve(store)
    store.run(lambda c: vmids.free(c, "c1", first))
    store.run(lambda c: vmids.quarantine(c, "c1", second, "a volume is in the way"))
    rest = [reserve(store) for _ in BAND[2:]]
    assert rest == list(BAND[2:])
    assert reserve(store) == first
    with pytest.raises(Unavailable):
        reserve(store)
    store.run(lambda c: vmids.end_quarantines(c, -1))
    assert reserve(store) == second


def state(store: Store) -> dict[int, str]:
    with store.read() as connection:
        query = sa.select(schema.vmids.c.vmid, schema.vmids.c.state)
        rows = connection.execute(query.where(schema.vmids.c.cluster == "c1")).all()
    return {row.vmid: row.state for row in rows}


def notice(
    store: Store,
    seen: list[int],
    gone: tuple[int, ...] = (),
    covered: tuple[int, int] | None = None,
) -> None:
    """What one message says of cluster c1."""
    with store.read() as connection:
        there = {vmid: VmFacts(vmid, "pve1", 1) for vmid in seen}
        new, free, _ = vmids.unexplained(connection, "c1", there, gone, covered)
    strangers = {vmid: VmFacts(vmid, "pve1", 1) for vmid in new}
    store.run(lambda c: vmids.take_notice(c, "c1", strangers, free))


def test_what_others_were_seen_to_have_is_passed_over_as_long_as_it_is_there(
    stores: list[Store],
) -> None:
    store, low = stores[0], BAND[0]
    ours = reserve(store)
    notice(store, [ours, low + 1, low + 2, low + 3, BAND[-1] + 7])
    assert state(store) == {
        ours: "reserved",
        low + 1: "taken",
        low + 2: "taken",
        low + 3: "taken",
    }
    assert reserve(store) == low + 4
    assert reserve(store, "c2") == low
    # One is seen gone; nothing is reported of the others.
    notice(store, [], (low + 1,))
    assert low + 1 not in state(store)
    # Whatever exists between two VMIDs is reported: one is there no more.
    notice(store, [ours, low + 3], covered=(low, low + 3))
    assert state(store).keys() == {ours, low + 3, low + 4}
    # What is ours, or in doubt, remains so whatever is seen.
    store.run(lambda c: vmids.quarantine(c, "c1", ours, "a volume"))
    notice(store, [], (ours, low + 4))
    assert state(store)[ours] == "quarantined"
    assert state(store)[low + 4] == "reserved"
    # A server that is adopted takes it.
    store.run(lambda c: vmids.claim(c, "c1", low + 3, "server", 2))
    assert state(store)[low + 3] == "reserved"


def test_what_is_reserved_while_it_is_seen_is_ours(stores: list[Store]) -> None:
    strangers = {vmid: VmFacts(vmid, "pve1", 1) for vmid in BAND}

    def work(number: int) -> int | None:
        store = stores[number % 2]
        if number % 4 == 3:
            store.run(lambda c: vmids.take_notice(c, "c1", strangers, ()))
            return None
        try:
            return reserve(store)
        except vmids.BandExhausted:
            return None

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        given = [vmid for vmid in pool.map(work, range(16)) if vmid is not None]
    assert len(set(given)) == len(given)
    found = state(stores[0])
    assert {vmid for vmid, one in found.items() if one == "reserved"} == set(given)
    assert set(found) == set(BAND)


@pytest.mark.parametrize(("shared", "count"), [(True, 1), (False, 2)])
def test_many_builds_at_once_reserve_one_template(
    stores: list[Store], shared: bool, count: int
) -> None:
    storage = StorageFacts("s1", "nfs", shared, True, 100, 100)
    facts = [
        HostFacts(
            host=node,
            cluster="c1",
            node=node,
            uuid=f"uuid-{node}",
            worker="w1",
            availability_zone="nova",
            observed_at=clock.utcnow(),
            vm_storage="s1",
            storages=(storage,),
        )
        for node in ("pve1", "pve2")
    ]

    def one(number: int) -> object:
        store, host = stores[number % 2], facts[number // 2 % 2]
        return store.run(lambda c: templates.reserve(c, host, "image-1"))

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        found = set(pool.map(one, range(24)))
    assert len(found) == count
    with stores[0].read() as connection:
        kept = connection.execute(schema.vmids.select()).all()
    assert len(kept) == count
