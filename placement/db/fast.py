"""The most frequent writes in one statement each: for PostgreSQL, where each is a journey.

Each is tried and tells whether it could be done; if not, nothing is written, and the general way
is taken, which also finds the reason.

A new consumer's claim locks providers and inventories in the ledger's order (after a wait
PostgreSQL reads the rows as they are then) and writes everything if everything fits, else
nothing. What a provider has none of yet (inventories, traits, aggregates) is written with a
compare-and-set on its generation, and on its last change, which moves where the generation
doesn't. None needs a transaction around it, so no lock is held while a process is waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.claim import Claim
from placement.db import sequence

_PLACE = "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"
_TAKE = sa.text(
    f"""
WITH wanted AS (
    SELECT * FROM unnest(
        CAST(:uuids AS varchar[]), CAST(:names AS varchar[]), CAST(:amounts AS bigint[])
    ) AS w (uuid, name, amount)
), locked AS MATERIALIZED (
    SELECT i.provider_id, i.resource_class, w.amount,
        w.amount BETWEEN i.min_unit AND i.max_unit AND w.amount % i.step_size = 0
        AND i.used + w.amount <= trunc((i.total - i.reserved) * i.allocation_ratio) AS fits
    FROM resource_providers p
    JOIN inventories i ON i.provider_id = p.id
    JOIN wanted w ON w.uuid = p.uuid AND w.name = i.resource_class
    ORDER BY p.id, i.resource_class
    FOR UPDATE OF p, i
), consumer AS (
    INSERT INTO consumers (uuid, generation, project_id, user_id, consumer_type, created_at)
    SELECT :consumer, 1, :project, :user, CAST(:type AS varchar), :now
    WHERE (SELECT count(*) FROM locked WHERE fits) = :lines
    ON CONFLICT (uuid) DO NOTHING RETURNING uuid
), taken AS (
    UPDATE inventories AS i SET used = i.used + l.amount, changed = {_PLACE}
    FROM locked l CROSS JOIN consumer
    WHERE i.provider_id = l.provider_id AND i.resource_class = l.resource_class
    RETURNING i.provider_id, i.resource_class, l.amount
), moved AS (
    UPDATE resource_providers AS r SET generation = r.generation + 1, updated_at = :now
    WHERE r.id IN (SELECT provider_id FROM taken) RETURNING r.id
), written AS (
    INSERT INTO allocations (consumer_uuid, provider_id, resource_class, used, created_at)
    SELECT c.uuid, t.provider_id, t.resource_class, t.amount, :now
    FROM taken t CROSS JOIN consumer c RETURNING 1
)
SELECT (SELECT count(*) FROM written) + 0 * (SELECT count(*) FROM moved)
"""
)


def _first(table: str, columns: str, source: str) -> sa.TextClause:
    """Return the statement that writes rows of a table in which the provider has none."""
    return sa.text(
        f"""
WITH seen AS (SELECT changed FROM resource_providers WHERE uuid = :uuid),
moved AS (
    UPDATE resource_providers AS p
    SET generation = generation + 1, updated_at = :now, changed = {_PLACE}
    WHERE uuid = :uuid AND generation = :generation
    AND changed = (SELECT s.changed FROM seen s)
    AND NOT EXISTS (SELECT 1 FROM {table} t WHERE t.provider_id = p.id)
    RETURNING id
), written AS (
    INSERT INTO {table} (provider_id, {columns})
    SELECT moved.id, given.* FROM moved CROSS JOIN {source} AS given RETURNING 1
)
SELECT (SELECT count(*) FROM moved) + 0 * (SELECT count(*) FROM written)
"""
    )


_NUMBERS = ("total", "reserved", "min_unit", "max_unit", "step_size")
_TRAITS = _first("provider_traits", "trait", "unnest(CAST(:names AS varchar[]))")
_AGGREGATES = _first("provider_aggregates", "aggregate_uuid", "unnest(CAST(:names AS varchar[]))")
_INVENTORIES = _first(
    "inventories",
    f"resource_class, {', '.join(_NUMBERS)}, allocation_ratio, used, changed, created_at,"
    " updated_at",
    "(SELECT *, 0, 0, CAST(:now AS bigint), CAST(:now AS bigint) FROM unnest("
    "CAST(:names AS varchar[]), "
    + ", ".join(f"CAST(:{name} AS integer[])" for name in _NUMBERS)
    + ", CAST(:allocation_ratio AS double precision[])) AS n)",
)
#: no inventory gives that much
_TOO_LARGE = 2**31


def suits(claim: Claim) -> bool:
    """Whether the claim may be tried: of a consumer that is said to be new."""
    amounts = [n for resources in claim.allocations.values() for n in resources.values()]
    return claim.generation is None and bool(amounts) and max(amounts) < _TOO_LARGE


def take(connection: Connection, claim: Claim) -> bool:
    """Make the claim true; whether that could be done."""
    lines = [
        (uuid, name, amount)
        for uuid, resources in claim.allocations.items()
        for name, amount in resources.items()
    ]
    uuids, names, amounts = (list(column) for column in zip(*lines, strict=True))
    bound: dict[str, Any] = {
        "uuids": uuids,
        "names": names,
        "amounts": amounts,
        "consumer": claim.consumer_uuid,
        "project": claim.project_id,
        "user": claim.user_id,
        "type": claim.consumer_type,
        "now": sequence.seconds(),
        "lines": len(lines),
    }
    return bool(connection.scalar(_TAKE, bound))


def first_traits(connection: Connection, uuid: str, names: set[str], generation: int) -> bool:
    """Write the traits of a provider that has none; whether that could be done."""
    return _written(connection, _TRAITS, uuid, generation, names=sorted(names))


def first_aggregates(connection: Connection, uuid: str, uuids: set[str], generation: int) -> bool:
    """Write the aggregates of a provider that has none; whether that could be done."""
    return _written(connection, _AGGREGATES, uuid, generation, names=sorted(uuids))


def first_inventories(
    connection: Connection, uuid: str, wanted: Mapping[str, Mapping[str, Any]], generation: int
) -> bool:
    """Write the inventories of a provider that has none; whether that could be done."""
    columns = {
        name: [values[name] for values in wanted.values()]
        for name in (*_NUMBERS, "allocation_ratio")
    }
    return _written(connection, _INVENTORIES, uuid, generation, names=list(wanted), **columns)


def _written(
    connection: Connection, statement: sa.TextClause, uuid: str, generation: int, **values: Any
) -> bool:
    if not values["names"] or not 0 <= generation < _TOO_LARGE:
        return False
    bound = {"uuid": uuid, "generation": generation, "now": sequence.seconds(), **values}
    return bool(connection.scalar(statement, bound))
