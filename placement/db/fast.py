"""The most frequent writes in one statement each, to save round trips to PostgreSQL.

Each returns whether it succeeded; if not, nothing is written, and the general way is taken, which
also finds the reason.

A new consumer's claim locks providers and inventories in the ledger's order (after a wait
PostgreSQL reads the rows as they are then) and writes everything if everything fits, else
nothing. What a provider has none of yet (inventories, traits, aggregates) is written with a
compare-and-set on its generation, and on its last change, which moves where the generation
doesn't. None needs a transaction around it, so no lock is held while a process is waited for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import orjson
from sqlalchemy.engine import Connection

from placement.claim import Claim, RankedClaim
from placement.db import sequence
from placement.db.prepared import Statement

_PLACE = "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"
_CREATE = Statement(
    f"""
INSERT INTO resource_providers
    (uuid, name, generation, root_id, changed, created_at, updated_at)
VALUES ($1, $2, 0, currval(pg_get_serial_sequence('resource_providers', 'id')), {_PLACE},
    CAST($3 AS bigint), CAST($3 AS bigint))
ON CONFLICT DO NOTHING RETURNING id
"""
)
_FITS = (
    "w.amount BETWEEN i.min_unit AND i.max_unit AND w.amount % i.step_size = 0"
    " AND i.used + w.amount <= trunc((i.total - i.reserved) * i.allocation_ratio)"
)


def _written_as(kind: str) -> str:
    """Return the part of a claim that writes what is locked, if all of it fits.

    $2 is the consumer, $3 its project, $4 its user, $6 the time, $7 the number of classes.
    """
    return f"""consumer AS (
    INSERT INTO consumers (uuid, generation, project_id, user_id, consumer_type, created_at)
    SELECT $2, 1, $3, $4, {kind}, CAST($6 AS bigint)
    WHERE (SELECT count(*) FROM locked WHERE fits) = CAST($7 AS integer)
    ON CONFLICT (uuid) DO NOTHING RETURNING uuid
), taken AS (
    UPDATE inventories AS i SET used = i.used + l.amount, changed = {_PLACE}
    FROM locked l CROSS JOIN consumer
    WHERE i.provider_id = l.provider_id AND i.resource_class = l.resource_class
    RETURNING i.provider_id, i.resource_class, l.amount
), moved AS (
    UPDATE resource_providers AS r SET generation = r.generation + 1,
        updated_at = CAST($6 AS bigint)
    WHERE r.id IN (SELECT provider_id FROM taken) RETURNING r.id
), written AS (
    INSERT INTO allocations (consumer_uuid, provider_id, resource_class, used, created_at)
    SELECT c.uuid, t.provider_id, t.resource_class, t.amount, CAST($6 AS bigint)
    FROM taken t CROSS JOIN consumer c RETURNING 1
)"""


_TAKE = Statement(
    f"""
WITH wanted AS (
    SELECT * FROM json_to_recordset(CAST($1 AS json))
        AS w (uuid varchar, name varchar, amount bigint) LIMIT CAST($7 AS integer)
), locked AS MATERIALIZED (
    SELECT i.provider_id, i.resource_class, w.amount,
        {_FITS} AS fits
    FROM resource_providers p
    JOIN inventories i ON i.provider_id = p.id
    JOIN wanted w ON w.uuid = p.uuid AND w.name = i.resource_class
    ORDER BY p.id, i.resource_class
    FOR UPDATE OF p, i
), {_written_as("CAST($5 AS varchar)")}
SELECT (SELECT count(*) FROM written) + 0 * (SELECT count(*) FROM moved)
"""
)
_TAKE_FIRST = Statement(
    f"""
WITH wanted AS (
    SELECT * FROM json_to_recordset(CAST($1 AS json))
        AS w (name varchar, amount bigint) LIMIT CAST($7 AS integer)
), first AS MATERIALIZED (
    SELECT p.id, p.uuid
    FROM json_array_elements_text(CAST($5 AS json)) WITH ORDINALITY AS o (uuid, place)
    JOIN resource_providers p ON p.uuid = o.uuid
    WHERE (
        SELECT count(*) FROM wanted w
        JOIN inventories i ON i.provider_id = p.id AND i.resource_class = w.name
        WHERE {_FITS}
    ) = CAST($7 AS integer)
    ORDER BY o.place LIMIT 1
), locked AS MATERIALIZED (
    SELECT i.provider_id, i.resource_class, w.amount, {_FITS} AS fits
    FROM first
    JOIN resource_providers p ON p.id = first.id
    JOIN inventories i ON i.provider_id = p.id
    JOIN wanted w ON w.name = i.resource_class
    ORDER BY i.resource_class
    FOR UPDATE OF p, i
), {_written_as("CAST(NULL AS varchar)")}
SELECT (SELECT uuid FROM first), (SELECT count(*) FROM written) + 0 * (SELECT count(*) FROM moved)
"""
)
_RELEASE = Statement(
    f"""
WITH seen AS (SELECT generation FROM consumers WHERE uuid = $1),
mine AS MATERIALIZED (
    SELECT c.uuid FROM consumers c
    WHERE c.uuid = $1 AND c.generation = (SELECT s.generation FROM seen s)
    FOR UPDATE
), locked AS MATERIALIZED (
    SELECT i.provider_id, i.resource_class, a.used
    FROM mine
    JOIN allocations a ON a.consumer_uuid = mine.uuid
    JOIN inventories i ON i.provider_id = a.provider_id AND i.resource_class = a.resource_class
    JOIN resource_providers p ON p.id = i.provider_id
    ORDER BY p.id, i.resource_class
    FOR UPDATE OF p, i
), gone AS (
    DELETE FROM consumers c USING mine
    WHERE c.uuid = mine.uuid AND (SELECT count(*) FROM locked)
        = (SELECT nullif(count(*), 0) FROM allocations a WHERE a.consumer_uuid = $1)
    RETURNING c.uuid
), freed AS (
    UPDATE inventories AS i SET used = i.used - l.used, changed = {_PLACE}
    FROM locked l CROSS JOIN gone
    WHERE i.provider_id = l.provider_id AND i.resource_class = l.resource_class
    RETURNING 1
)
SELECT (SELECT count(*) FROM gone) + 0 * (SELECT count(*) FROM freed)
"""
)


def _first(table: str, columns: str, values: str) -> Statement:
    """Return the statement that writes rows of a table in which the provider has none.

    $1 is its UUID, $2 its generation, $3 the time and $4 what `values` selects from, as JSON.
    """
    return Statement(
        f"""
WITH seen AS (SELECT changed FROM resource_providers WHERE uuid = $1),
moved AS (
    UPDATE resource_providers AS p
    SET generation = generation + 1, updated_at = CAST($3 AS bigint), changed = {_PLACE}
    WHERE uuid = $1 AND generation = CAST($2 AS integer)
    AND changed = (SELECT s.changed FROM seen s)
    AND NOT EXISTS (SELECT 1 FROM {table} t WHERE t.provider_id = p.id)
    RETURNING id
), written AS (
    INSERT INTO {table} (provider_id, {columns})
    SELECT moved.id, given.* FROM moved CROSS JOIN ({values}) AS given RETURNING 1
)
SELECT (SELECT count(*) FROM moved) + 0 * (SELECT count(*) FROM written)
"""
    )


_NUMBERS = ("total", "reserved", "min_unit", "max_unit", "step_size")
_NAMES = "SELECT * FROM json_array_elements_text(CAST($4 AS json))"
_TRAITS = _first("provider_traits", "trait", _NAMES)
_AGGREGATES = _first("provider_aggregates", "aggregate_uuid", _NAMES)
_INVENTORIES = _first(
    "inventories",
    f"resource_class, {', '.join(_NUMBERS)}, allocation_ratio, used, changed, created_at,"
    " updated_at",
    "SELECT *, 0, 0, CAST($3 AS bigint), CAST($3 AS bigint)"
    " FROM json_to_recordset(CAST($4 AS json)) AS n (resource_class varchar, "
    + ", ".join(f"{name} integer" for name in _NUMBERS)
    + ", allocation_ratio double precision)",
)
#: no inventory gives that much
_TOO_LARGE = 2**31


def create(connection: Connection, uuid: str, name: str) -> tuple[int, int] | None:
    """Make a provider without a parent and return its internal ID and the time.

    None when it couldn't be done.
    """
    now = sequence.seconds()
    row = _CREATE.row(connection, uuid, name, now)
    return (int(row[0]), now) if row else None


def suits(claim: Claim) -> bool:
    """Return whether the claim may be tried: its consumer is expected to be new."""
    amounts = [n for resources in claim.allocations.values() for n in resources.values()]
    return claim.generation is None and _are_possible(amounts)


def suits_first(claim: RankedClaim) -> bool:
    """Return whether the ranked claim may be tried."""
    return _are_possible(claim.resources.values())


def _are_possible(amounts: Collection[int]) -> bool:
    return bool(amounts) and max(amounts) < _TOO_LARGE


def take(connection: Connection, claim: Claim) -> bool:
    """Write the claim; return whether that succeeded."""
    wanted = [
        {"uuid": uuid, "name": name, "amount": amount}
        for uuid, resources in claim.allocations.items()
        for name, amount in resources.items()
    ]
    return _done(
        _TAKE,
        connection,
        orjson.dumps(wanted).decode(),
        claim.consumer_uuid,
        claim.project_id,
        claim.user_id,
        claim.consumer_type,
        sequence.seconds(),
        len(wanted),
    )


def take_first(connection: Connection, claim: RankedClaim) -> tuple[str | None, bool] | None:
    """Write the claim on the first provider with room.

    Return that provider (None: none has room) and whether the claim was written; None when the
    database refused.
    """
    wanted = [{"name": name, "amount": amount} for name, amount in claim.resources.items()]
    row = _TAKE_FIRST.row(
        connection,
        orjson.dumps(wanted).decode(),
        claim.consumer_uuid,
        claim.project_id,
        claim.user_id,
        orjson.dumps(list(claim.providers)).decode(),
        sequence.seconds(),
        len(wanted),
    )
    return (row[0] or None, bool(int(row[1]))) if row else None


def release(connection: Connection, consumer_uuid: str) -> bool:
    """Delete a consumer with its allocations; return whether that succeeded."""
    return _done(_RELEASE, connection, consumer_uuid)


def first_traits(connection: Connection, uuid: str, names: set[str], generation: int) -> bool:
    """Write the traits of a provider without any; return whether that succeeded."""
    return _written(_TRAITS, connection, uuid, generation, sorted(names))


def first_aggregates(connection: Connection, uuid: str, uuids: set[str], generation: int) -> bool:
    """Write the aggregates of a provider without any; return whether that succeeded."""
    return _written(_AGGREGATES, connection, uuid, generation, sorted(uuids))


def first_inventories(
    connection: Connection, uuid: str, wanted: Mapping[str, Mapping[str, Any]], generation: int
) -> bool:
    """Write the inventories of a provider without any; return whether that succeeded."""
    rows = [
        {**values, "resource_class": name, "allocation_ratio": float(values["allocation_ratio"])}
        for name, values in wanted.items()
    ]
    return _written(_INVENTORIES, connection, uuid, generation, rows)


def _written(
    statement: Statement,
    connection: Connection,
    uuid: str,
    generation: int,
    given: Iterable[Any],
) -> bool:
    if not given or not 0 <= generation < _TOO_LARGE:
        return False
    values = orjson.dumps(given).decode()
    return _done(statement, connection, uuid, generation, sequence.seconds(), values)


def _done(statement: Statement, connection: Connection, *values: str | int | None) -> bool:
    row = statement.row(connection, *values)
    return bool(row and int(row[0]))
