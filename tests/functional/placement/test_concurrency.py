"""Eight processes claim at once: nothing is given twice, nothing that fits is refused.

MICRONOVA_TEST_CLAIMS is how many claims each process makes (default 40; thousands take minutes).
"""

from __future__ import annotations

import multiprocessing
import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from placement.claim import RankedClaim
from placement.db.engine import Database
from placement.errors import ConcurrentUpdate, InventoryRefused
from placement.ledger import Ledger
from placement.operation import Services
from tests.functional.placement.builders import a_provider, a_uuid, used
from tests.functional.placement.test_claims import a_claim, assert_books_balance

PROCESSES = 8
CLAIMS = int(os.environ.get("MICRONOVA_TEST_CLAIMS", "40"))
pytestmark = [
    pytest.mark.timeout(120 + CLAIMS),
    pytest.mark.database,
]
Work = Callable[[Ledger, list[str], int], Counter[str]]


def outcome(ledger: Ledger, claim: Any) -> str:
    try:
        ledger.write([claim])
    except InventoryRefused:
        return "refused"
    except ConcurrentUpdate:
        return "stale"
    return "granted"


def one_each(ledger: Ledger, providers: list[str], number: int) -> Counter[str]:
    """Claim one VCPU of the first provider, again and again."""
    return Counter(
        outcome(ledger, a_claim(a_uuid(), **{providers[0]: {"VCPU": 1}})) for _ in range(CLAIMS)
    )


def two_at_once(ledger: Ledger, providers: list[str], number: int) -> Counter[str]:
    """Claim of two providers, in any order; replace and release what one has."""
    chance = random.Random(number)
    mine: dict[str, int] = {}
    counts: Counter[str] = Counter()
    for _ in range(CLAIMS):
        wanted = {one: {"VCPU": chance.randint(1, 4)} for one in chance.sample(providers, 2)}
        consumer = chance.choice([*mine, a_uuid()])
        if consumer in mine and chance.random() < 0.5:
            ledger.release(consumer)
            del mine[consumer]
            counts["released"] += 1
            continue
        said = outcome(ledger, a_claim(consumer, mine.get(consumer), **wanted))
        if said == "granted":
            mine[consumer] = mine.get(consumer, 0) + 1
        counts[said] += 1
    return counts


def own(ledger: Ledger, providers: list[str], number: int) -> Counter[str]:
    """Claim of a provider that no other process touches."""
    mine = providers[number]
    return Counter(
        outcome(ledger, a_claim(a_uuid(), **{mine: {"VCPU": 1}})) for _ in range(CLAIMS)
    )


def of_any(ledger: Ledger, providers: list[str], number: int) -> Counter[str]:
    """Claim one VCPU of any provider, in an order of one's own."""
    chance = random.Random(number)
    found = (
        ledger.take_first(
            RankedClaim(a_uuid(), chance.sample(providers, 3), {"VCPU": 1}, "project", "user")
        )
        for _ in range(CLAIMS)
    )
    return Counter("granted" if one in providers else "refused" for one in found)


def _run(url: str, work: Work, providers: list[str], number: int, said: Any) -> None:
    database = Database(url)
    said.put(work(Ledger(database), providers, number))
    database.close()


def at_once(url: str, work: Work, providers: list[str]) -> Counter[str]:
    """Run the work in all processes and return what came of it."""
    context = multiprocessing.get_context("forkserver")
    # One import for all of them.
    context.set_forkserver_preload(["placement.ledger", __name__])
    said = context.Queue()
    workers = [
        context.Process(target=_run, args=(url, work, providers, number, said))
        for number in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    counts: Counter[str] = Counter()
    for _ in workers:
        counts += said.get(timeout=100 + CLAIMS)
    for worker in workers:
        worker.join(30)
    said.close()
    said.join_thread()
    assert [worker.exitcode for worker in workers] == [0] * PROCESSES
    return counts


def test_one_provider_gives_exactly_what_it_has(
    database_url: str, services: Services, api: Any
) -> None:
    too_many = CLAIMS
    room = PROCESSES * CLAIMS - too_many
    one = a_provider(api, VCPU=room)
    counts = at_once(database_url, one_each, [one])
    assert counts == {"granted": room, "refused": too_many}
    assert used(api, one) == {"VCPU": room}
    assert_books_balance(services.database)


def test_any_provider_gives_exactly_what_it_has(
    database_url: str, services: Services, api: Any
) -> None:
    providers = [a_provider(api, VCPU=2 * CLAIMS) for _ in range(3)]
    counts = at_once(database_url, of_any, providers)
    assert counts == {"granted": 6 * CLAIMS, "refused": 2 * CLAIMS}
    assert [used(api, one) for one in providers] == [{"VCPU": 2 * CLAIMS}] * 3
    assert_books_balance(services.database)


def test_all_that_fits_is_granted(database_url: str, services: Services, api: Any) -> None:
    one = a_provider(api, VCPU=PROCESSES * CLAIMS)
    assert at_once(database_url, one_each, [one]) == {"granted": PROCESSES * CLAIMS}
    assert_books_balance(services.database)


def test_claims_on_different_providers_never_meet(
    database_url: str, services: Services, api: Any
) -> None:
    providers = [a_provider(api, VCPU=CLAIMS) for _ in range(PROCESSES)]
    assert at_once(database_url, own, providers) == {"granted": PROCESSES * CLAIMS}
    assert_books_balance(services.database)


def test_any_interleaving_keeps_the_books(database_url: str, services: Services, api: Any) -> None:
    providers = [a_provider(api, VCPU=60) for _ in range(4)]
    counts = at_once(database_url, two_at_once, providers)
    assert counts["stale"] == 0
    assert counts["granted"] > 0
    assert_books_balance(services.database)
    follower = services.follower.current()
    for one in providers:
        provider = follower.at(follower.slot_of_uuid[one])
        assert {"VCPU": provider.stocks["VCPU"].used} == used(api, one)
