"""Claims, decided in the database in one short transaction.

The order of locks is the same everywhere: consumers by UUID, providers and their inventories by
ID, the change sequence last. So no two claims wait for each other in a circle, what is read under
the locks is what is decided on, and two claims that both fit both succeed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from common.errors import Invalid, NotFound
from placement.claim import Claim, Held, Line, RankedClaim, check, fits
from placement.db import claims as sql
from placement.db import fast, schema, sequence
from placement.db.engine import Database
from placement.errors import ConcurrentUpdate
from placement.snapshot import Inventory

T = TypeVar("T")


class Ledger:
    """The allocations of one database; threads share it."""

    def __init__(self, database: Database, *, attempts: int = 10) -> None:
        self._database = database
        self._attempts = attempts

    def write(self, claims: Sequence[Claim]) -> None:
        """Write all claims, or none.

        A claim of a new consumer is six statements (on PostgreSQL one, where it fits), a
        replacement eight. Raises ConcurrentUpdate for a generation that is not the current one,
        InventoryRefused where capacity or units don't allow it, Invalid for an unknown provider
        or resource class.
        """
        if (
            self._database.is_postgresql
            and len(claims) == 1
            and fast.suits(claims[0])
            and self._database.write(lambda c: fast.take(c, claims[0]), alone=True)
        ):
            return
        self._repeated(lambda connection: write(connection, claims))

    def _repeated(self, work: Callable[[Connection], T]) -> T:
        """Run a transaction again where another one creates the same consumer at the same time."""
        for _ in range(self._attempts):
            try:
                return self._database.write(work)
            except exc.IntegrityError:
                # Another claim has just created the same consumer: look again.
                continue
        raise ConcurrentUpdate(
            "Inventory and/or allocations changed while attempting to allocate: "
            f"{ConcurrentUpdate.sentence}"
        )

    def take_first(self, claim: RankedClaim) -> str | None:
        """Write the claim on the first of its providers with room; return that provider.

        None: none of them has. One statement on PostgreSQL, elsewhere six, and where another
        claim is faster. Raises ConcurrentUpdate when the consumer has allocations.
        """
        if self._database.is_postgresql and fast.suits_first(claim):
            found = self._database.write(lambda c: fast.take_first(c, claim), alone=True)
            if found is not None and (found[0] is None or found[1]):
                return found[0]
        return self._repeated(lambda connection: take_first(connection, claim))

    def release(self, consumer_uuid: str) -> None:
        """Delete a consumer with its allocations; one statement on PostgreSQL, elsewhere five.

        Raises NotFound when it has nothing.
        """
        if self._database.is_postgresql and self._database.write(
            lambda connection: fast.release(connection, consumer_uuid), alone=True
        ):
            return
        self._database.write(lambda connection: release(connection, consumer_uuid))

    def release_all(self, consumer_uuids: Sequence[str]) -> None:
        """Delete those of the consumers that exist, with their allocations; five statements."""
        self._database.write(lambda connection: release_all(connection, consumer_uuids))


def write(connection: Connection, claims: Sequence[Claim]) -> None:
    """Write all claims in the transaction of `connection`; see Ledger.write."""
    if not claims:
        return
    known = _lock_consumers(connection, [claim.consumer_uuid for claim in claims])
    for claim in claims:
        _check_generation(claim, known.get(claim.consumer_uuid))
    held = _lock_stocks(connection, claims, sorted(known))
    wanted = _wanted(claims)
    _require_known(connection, wanted, held, claims[0].consumer_uuid)
    check(wanted, held)
    _rewrite(connection, claims, known, {line: held[line].provider_id for line in held})
    _stamp(connection, wanted, held, claims)


def take_first(connection: Connection, claim: RankedClaim) -> str | None:
    """Write a ranked claim in the transaction of `connection`; see Ledger.take_first."""
    claims = [claim.on(uuid) for uuid in dict.fromkeys(claim.providers)]
    if _lock_consumers(connection, [claim.consumer_uuid]):
        raise ConcurrentUpdate("consumer generation conflict - the consumer has allocations")
    held = _lock_stocks(connection, claims, ())
    chosen = next((one for one in claims if fits(one, held)), None)
    if chosen is None:
        return None
    wanted = _wanted([chosen])
    mine = {line: held[line] for line in wanted}
    _rewrite(connection, [chosen], {}, {line: one.provider_id for line, one in mine.items()})
    _stamp(connection, wanted, mine, [chosen])
    return next(iter(chosen.allocations))


def release(connection: Connection, consumer_uuid: str) -> None:
    """Delete a consumer in the transaction of `connection`; see Ledger.release."""
    if not release_all(connection, [consumer_uuid]):
        raise NotFound(f"No allocations for consumer '{consumer_uuid}'")


def release_all(connection: Connection, consumer_uuids: Sequence[str]) -> bool:
    """Delete consumers in the transaction of `connection`; return whether any had something."""
    known = sorted(_lock_consumers(connection, consumer_uuids))
    if not known:
        return False
    if connection.dialect.name == "mysql":
        _lock_providers_first(connection, [], known)
    held = _held(connection.execute(sql.LOCK_HELD, {"consumers": known}))
    if not held:
        return False
    connection.execute(sql.DELETE_CONSUMERS, {"consumers": known})
    _change_used(connection, {}, held)
    return True


def _wanted(claims: Iterable[Claim]) -> dict[Line, list[int]]:
    wanted: dict[Line, list[int]] = defaultdict(list)
    for claim in claims:
        for uuid, resources in claim.allocations.items():
            for name, amount in resources.items():
                wanted[uuid, name].append(amount)
    return wanted


def _check_generation(claim: Claim, current: int | None) -> None:
    if not claim.checked or claim.generation == current:
        return
    expected = "null" if current is None else current
    got = "None" if claim.generation is None else claim.generation
    raise ConcurrentUpdate(f"consumer generation conflict - expected {expected} but got {got}")


def _require_known(
    connection: Connection, wanted: Mapping[Line, Any], held: Mapping[Line, Held], consumer: str
) -> None:
    """Raise Invalid for a provider or a resource class that doesn't exist.

    Asks the database only when something wanted has no inventory.
    """
    if all(line in held for line in wanted):
        return
    for column, names, sentence in (
        (
            schema.providers.c.uuid,
            {uuid for uuid, _ in wanted},
            "Allocation for resource provider '{}' that does not exist.",
        ),
        (
            schema.resource_classes.c.name,
            {name for _, name in wanted},
            f"Unable to allocate inventory for consumer {consumer}: No such resource class {{}}.",
        ),
    ):
        there = set(connection.scalars(sa.select(column).where(column.in_(names))))
        for name in sorted(names - there):
            raise Invalid(sentence.format(name))


def _lock_consumers(connection: Connection, uuids: Sequence[str]) -> dict[str, int]:
    """Lock those of the consumers that exist; return their generations."""
    rows = connection.execute(sql.LOCK_CONSUMERS, {"consumers": list(uuids)})
    return {row.uuid: row.generation for row in rows}


def _lock_stocks(
    connection: Connection, claims: Iterable[Claim], known: Sequence[str]
) -> dict[Line, Held]:
    uuids = list({uuid for claim in claims for uuid in claim.allocations})
    if connection.dialect.name == "mysql":
        _lock_providers_first(connection, uuids, known)
    if known:
        rows = connection.execute(sql.LOCK_BOTH, {"providers": uuids, "consumers": list(known)})
    elif uuids:
        rows = connection.execute(sql.LOCK_STOCKS, {"providers": uuids})
    else:
        return {}
    return _held(rows)


def _lock_providers_first(
    connection: Connection, uuids: Sequence[str], consumers: Sequence[str]
) -> None:
    """Lock the providers by ID, as MariaDB locks the rows of a join in any order."""
    ids = set(connection.scalars(sql.PROVIDER_IDS, {"providers": uuids}))
    if consumers:
        ids |= set(connection.scalars(sql.HELD_IDS, {"consumers": list(consumers)}))
    for provider_id in sorted(ids):
        connection.execute(sql.LOCK_PROVIDER, {"provider": provider_id})


def _held(rows: Iterable[Any]) -> dict[Line, Held]:
    held: dict[Line, Held] = {}
    for provider_id, uuid, name, freed, *stock in rows:
        before = held.get((uuid, name))
        held[uuid, name] = Held(
            provider_id, Inventory(*stock), (freed or 0) + (before.freed if before else 0)
        )
    return held


def _rewrite(
    connection: Connection,
    claims: Sequence[Claim],
    known: Mapping[str, int],
    provider_ids: Mapping[Line, int],
) -> None:
    """Replace the rows of consumers and allocations; delete consumers without any."""
    now = sequence.seconds()
    staying = [claim for claim in claims if claim.allocations]
    gone = [c.consumer_uuid for c in claims if not c.allocations and c.consumer_uuid in known]
    if gone:
        connection.execute(sql.DELETE_CONSUMERS, {"consumers": gone})
    kept = [claim for claim in staying if claim.consumer_uuid in known]
    if kept:
        uuids = [claim.consumer_uuid for claim in kept]
        connection.execute(sql.DELETE_ALLOCATIONS, {"consumers": uuids})
        connection.execute(sql.UPDATE_CONSUMER, [_consumer_row(claim, now) for claim in kept])
    new = [claim for claim in staying if claim.consumer_uuid not in known]
    if new:
        connection.execute(sql.INSERT_CONSUMER, [_consumer_row(claim, now) for claim in new])
    rows = [
        {
            "consumer_uuid": claim.consumer_uuid,
            "provider_id": provider_ids[uuid, name],
            "resource_class": name,
            "used": amount,
            "created_at": now,
        }
        for claim in staying
        for uuid, resources in claim.allocations.items()
        for name, amount in resources.items()
    ]
    if rows:
        connection.execute(sql.INSERT_ALLOCATION, rows)


def _consumer_row(claim: Claim, now: int) -> dict[str, Any]:
    return {
        "of": claim.consumer_uuid,
        "project": claim.project_id,
        "user": claim.user_id,
        "type": claim.consumer_type,
        "now": now,
    }


def _stamp(
    connection: Connection,
    wanted: Mapping[Line, Sequence[int]],
    held: Mapping[Line, Held],
    claims: Sequence[Claim],
) -> None:
    """Take the next change, write `used`, and move the generation of the providers named."""
    if not held:
        return
    _change_used(connection, wanted, held)
    named = {held[line].provider_id for line in wanted}
    if any(not claim.allocations for claim in claims):
        named |= {one.provider_id for one in held.values() if one.freed}
    connection.execute(sql.BUMP_PROVIDERS, {"ids": sorted(named), "now": sequence.seconds()})


def _change_used(
    connection: Connection, wanted: Mapping[Line, Sequence[int]], held: Mapping[Line, Held]
) -> None:
    rows = [
        {
            "provider": one.provider_id,
            "name": line[1],
            "more": sum(wanted.get(line, ())) - one.freed,
        }
        for line, one in held.items()
        if line in wanted or one.freed
    ]
    sequence.advance(connection)
    connection.execute(sql.CHANGE_USED, rows)
