"""Claims: what they cost, and that nothing is ever given twice."""

from __future__ import annotations

import multiprocessing
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from common.errors import NotFound
from placement.claim import Claim
from placement.db import fast, schema
from placement.db.engine import Database
from placement.errors import ConcurrentUpdate, InventoryRefused
from placement.ledger import Ledger, write
from placement.operation import Services
from tests.functional.placement.builders import a_body, a_provider, a_uuid, set_inventory, used
from tests.functional.waiting import while_it_waits

pytestmark = [pytest.mark.timeout(900), pytest.mark.sampled(2)]
Counted = Callable[[Callable[[], Any]], list[str]]


def a_claim(consumer: str, generation: int | None = None, **allocations: dict[str, int]) -> Claim:
    return Claim(consumer, allocations, "project", "user", "INSTANCE", generation)


def assert_books_balance(database: Database) -> None:
    """`used` of every inventory is the sum of the allocations, and within capacity."""
    i, a = schema.inventories.c, schema.allocations.c
    total = (
        sa.select(sa.func.coalesce(sa.func.sum(a.used), 0))
        .where(a.provider_id == i.provider_id, a.resource_class == i.resource_class)
        .scalar_subquery()
    )
    query = sa.select(i.used, total, (i.total - i.reserved) * i.allocation_ratio)
    rows = database.read(lambda connection: connection.execute(query).all())
    assert rows
    for kept, summed, capacity in rows:
        assert kept == summed <= capacity
    consumers = sa.select(schema.consumers.c.uuid).where(
        schema.consumers.c.uuid.not_in(sa.select(a.consumer_uuid))
    )
    assert database.read(lambda connection: connection.execute(consumers).all()) == []


def test_statements_of_a_claim_are_few(services: Services, api: Any, count: Counted) -> None:
    three = {"VCPU": 8, "MEMORY_MB": 4096, "DISK_GB": 50}
    one, two = a_provider(api, **three), a_provider(api, **three)
    wanted = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
    consumer, ledger = a_uuid(), services.ledger
    if services.database.reader.dialect.name == "mysql":
        pytest.skip("MariaDB locks the providers one by one")
    most = 1 if services.database.is_postgresql else 7
    assert len(count(lambda: ledger.write([a_claim(consumer, **{one: wanted})]))) <= most
    moved = [a_claim(consumer, 1, **{one: wanted, two: wanted})]
    assert len(count(lambda: ledger.write(moved))) <= 8
    most = 1 if services.database.is_postgresql else 5
    assert len(count(lambda: ledger.release(consumer))) <= most
    assert_books_balance(services.database)


def test_statements_of_following_are_few(services: Services, api: Any, count: Counted) -> None:
    one = a_provider(api)
    services.follower.current()
    assert len(count(services.follower.current)) == 1
    services.ledger.write([a_claim(a_uuid(), **{one: {"VCPU": 1}})])
    assert len(count(services.follower.current)) <= 3
    set_inventory(api, one, VCPU=9)
    assert len(count(services.follower.current)) <= 8


def test_a_snapshot_has_what_was_committed(api: Any) -> None:
    one = a_provider(api, VCPU=8)
    query = "/allocation_candidates?resources=VCPU:5"
    assert len(api.simulate_get(query).json["allocation_requests"]) == 1
    consumer = a_uuid()
    api.simulate_put(f"/allocations/{consumer}", json=a_body(**{one: {"VCPU": 4}}))
    assert api.simulate_get(query).json["allocation_requests"] == []
    two = a_provider(api, VCPU=8)
    summaries = api.simulate_get(query).json["provider_summaries"]
    assert summaries[two]["resources"] == {"VCPU": {"capacity": 8, "used": 0}}
    api.simulate_delete(f"/allocations/{consumer}")
    api.simulate_delete(f"/resource_providers/{two}")
    assert list(api.simulate_get(query).json["provider_summaries"]) == [one]
    api.simulate_put("/traits/CUSTOM_NEW")
    answer = api.simulate_get(f"{query}&required=CUSTOM_NEW")
    assert (answer.status_code, answer.json["allocation_requests"]) == (200, [])


def test_generations_of_consumers(services: Services, api: Any) -> None:
    one = a_provider(api)
    consumer, ledger = a_uuid(), services.ledger
    with pytest.raises(ConcurrentUpdate, match="expected null but got 1"):
        ledger.write([a_claim(consumer, 1, **{one: {"VCPU": 1}})])
    ledger.write([a_claim(consumer, None, **{one: {"VCPU": 1}})])
    with pytest.raises(ConcurrentUpdate, match="expected 1 but got None"):
        ledger.write([a_claim(consumer, None, **{one: {"VCPU": 2}})])
    ledger.write([a_claim(consumer, 1, **{one: {"VCPU": 2}})])
    ledger.write([a_claim(consumer, 2)])
    with pytest.raises(NotFound):
        ledger.release(consumer)
    ledger.write([a_claim(consumer, None, **{one: {"VCPU": 8}})])
    assert_books_balance(services.database)


def test_several_consumers_all_or_none(services: Services, api: Any) -> None:
    one, two = a_provider(api, VCPU=4), a_provider(api, VCPU=4)
    first, second = a_uuid(), a_uuid()
    services.ledger.write([a_claim(first, **{one: {"VCPU": 4}})])
    with pytest.raises(InventoryRefused):
        services.ledger.write(
            [a_claim(first, 1, **{two: {"VCPU": 3}}), a_claim(second, **{two: {"VCPU": 2}})]
        )
    assert (used(api, one), used(api, two)) == ({"VCPU": 4}, {"VCPU": 0})
    # What one gives up another may take in the same stroke.
    services.ledger.write(
        [a_claim(first, 1, **{two: {"VCPU": 4}}), a_claim(second, **{one: {"VCPU": 4}})]
    )
    assert (used(api, one), used(api, two)) == ({"VCPU": 4}, {"VCPU": 4})
    assert_books_balance(services.database)


def test_refusals_name_the_reason(api: Any) -> None:
    one = a_provider(api, VCPU=4)
    path = f"/allocations/{a_uuid()}"
    for resources, status, sentence in (
        ({"VCPU": 5}, 409, f"'VCPU' on resource provider '{one}'. The requested amount would"),
        ({"DISK_GB": 1}, 409, f"Inventory for 'DISK_GB' on resource provider '{one}' invalid."),
        ({"PONIES": 1}, 400, "No such resource class PONIES."),
    ):
        answer = api.simulate_put(path, json=a_body(**{one: resources}))
        assert answer.status_code == status
        assert sentence in answer.json["errors"][0]["detail"]
    missing = a_uuid()
    answer = api.simulate_put(path, json=a_body(**{missing: {"VCPU": 1}}))
    assert (answer.status_code, f"'{missing}' that does not exist" in answer.text) == (400, True)


def granted(ledger: Ledger, provider: str, times: int) -> int:
    """Claim one VCPU so often; return how many were granted."""
    count = 0
    for _ in range(times):
        try:
            ledger.write([a_claim(a_uuid(), **{provider: {"VCPU": 1}})])
            count += 1
        except InventoryRefused:
            continue
    return count


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_release_waits_for_a_claim_of_the_consumer(services: Services, api: Any) -> None:
    """What the consumer has when the release gets its lock is not what it had when it came."""
    one, two = a_provider(api, VCPU=8), a_provider(api, VCPU=8)
    consumer, writer = a_uuid(), services.database.writer
    services.ledger.write([a_claim(consumer, **{one: {"VCPU": 3}})])
    moved = [a_claim(consumer, 1, **{one: {"VCPU": 1}, two: {"VCPU": 5}})]
    released = while_it_waits(
        writer, lambda c: write(c, moved), lambda c: fast.release(c, consumer)
    )
    assert not released
    assert (used(api, one), used(api, two)) == ({"VCPU": 1}, {"VCPU": 5})
    services.ledger.release(consumer)
    assert (used(api, one), used(api, two)) == ({"VCPU": 0}, {"VCPU": 0})
    assert_books_balance(services.database)


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_release_waits_for_another_claim_of_its_providers(services: Services, api: Any) -> None:
    one, two = a_provider(api, VCPU=8), a_provider(api, VCPU=8)
    consumer, other = a_uuid(), a_uuid()
    services.ledger.write([a_claim(consumer, **{one: {"VCPU": 3}, two: {"VCPU": 2}})])
    claims = [a_claim(other, **{one: {"VCPU": 4}})]
    assert while_it_waits(
        services.database.writer,
        lambda c: write(c, claims),
        lambda c: fast.release(c, consumer),
    )
    assert (used(api, one), used(api, two)) == ({"VCPU": 4}, {"VCPU": 0})
    assert_books_balance(services.database)


def test_threads_get_exactly_what_there_is(services: Services, api: Any) -> None:
    one = a_provider(api, VCPU=100)
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda _: granted(services.ledger, one, 15), range(8)))
    assert sum(counts) == 100
    assert used(api, one) == {"VCPU": 100}
    assert_books_balance(services.database)


def test_one_consumer_claimed_twice_at_once_is_one(services: Services, api: Any) -> None:
    one, two = a_provider(api), a_provider(api)
    outcomes: list[str] = []

    def claim(consumer: str, provider: str, start: threading.Barrier) -> None:
        start.wait(60)
        try:
            services.ledger.write([a_claim(consumer, **{provider: {"VCPU": 1}})])
            outcomes.append("granted")
        except ConcurrentUpdate:
            outcomes.append("conflict")

    for _ in range(4):
        start = threading.Barrier(2)
        consumer = a_uuid()
        threads = [
            threading.Thread(target=claim, args=(consumer, provider, start))
            for provider in (one, two)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert sorted(outcomes) == ["conflict"] * 4 + ["granted"] * 4
    assert_books_balance(services.database)


def churn(url: str, providers: list[str], seed: int, rounds: int) -> None:
    """Claim, move and release at random, several providers at a time; run in a process."""
    chance = random.Random(seed)
    database = Database(url)
    ledger = Ledger(database)
    mine: dict[str, int] = {}
    for _ in range(rounds):
        some = chance.sample(providers, 2)
        wanted = {one: {"VCPU": chance.randint(1, 4)} for one in some}
        consumer = chance.choice([*mine, a_uuid()])
        try:
            if consumer in mine and chance.random() < 0.4:
                ledger.release(consumer)
                del mine[consumer]
            else:
                ledger.write([a_claim(consumer, mine.get(consumer), **wanted)])
                mine[consumer] = mine.get(consumer, 0) + 1
        except InventoryRefused:
            continue
    database.close()


def test_processes_never_overcommit(database_url: str, services: Services, api: Any) -> None:
    providers = [a_provider(api, VCPU=20) for _ in range(3)]
    spawn = multiprocessing.get_context("spawn")
    workers = [
        spawn.Process(target=churn, args=(database_url, providers, seed, 40)) for seed in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert_books_balance(services.database)


def test_snapshots_of_several_workers_end_up_equal(
    services: Services, conf: Any, api: Any
) -> None:
    """While others write, a follower never misses a change."""
    from placement.app import make_services

    providers = [a_provider(api, VCPU=50) for _ in range(3)]
    other = make_services(conf)
    stop = threading.Event()

    def follow() -> None:
        while not stop.wait(0.002):
            other.follower.current()

    reader = threading.Thread(target=follow)
    reader.start()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: granted(services.ledger, providers[n % 3], 10), range(6)))
    stop.set()
    reader.join(30)
    ours, theirs = services.follower.current(), other.follower.current()
    other.database.close()
    assert [one for one in ours.providers if one] == [one for one in theirs.providers if one]
    assert sum(one.stocks["VCPU"].used for one in theirs.providers if one) == 60
