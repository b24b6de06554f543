"""A new consumer's claim in one statement: for PostgreSQL, where each statement is a journey.

The statement locks the providers in the order of their IDs, takes what is wanted where it fits
(after a wait PostgreSQL tests the rows as they are then), writes consumer and allocations, and
tells how much of it could be done. Anything but everything means that the transaction is taken
back, and `placement.ledger` looks at the claim step by step, which also finds the reason.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.claim import Claim
from placement.db import sequence

_TAKE = sa.text(
    """
WITH wanted AS (
    SELECT * FROM unnest(
        CAST(:uuids AS varchar[]), CAST(:names AS varchar[]), CAST(:amounts AS bigint[])
    ) AS w (uuid, name, amount)
), providers AS MATERIALIZED (
    SELECT id, uuid FROM resource_providers
    WHERE uuid = ANY (CAST(:uuids AS varchar[])) ORDER BY id FOR UPDATE
), taken AS (
    UPDATE inventories AS i
    SET used = i.used + w.amount, changed = CAST(CAST(pg_current_xact_id() AS text) AS bigint)
    FROM wanted w JOIN providers p ON p.uuid = w.uuid
    WHERE i.provider_id = p.id AND i.resource_class = w.name
    AND w.amount BETWEEN i.min_unit AND i.max_unit AND w.amount % i.step_size = 0
    AND i.used + w.amount <= trunc((i.total - i.reserved) * i.allocation_ratio)
    RETURNING i.provider_id, i.resource_class, w.amount
), consumer AS (
    INSERT INTO consumers (uuid, generation, project_id, user_id, consumer_type, created_at)
    VALUES (:consumer, 1, :project, :user, CAST(:type AS varchar), :now)
    ON CONFLICT (uuid) DO NOTHING RETURNING uuid
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


#: no inventory gives that much
_TOO_LARGE = 2**31


class NotSimple(Exception):
    """The claim can't be made in one statement."""


def suits(claim: Claim) -> bool:
    """Whether the claim may be tried: of a consumer that is said to be new."""
    amounts = [n for resources in claim.allocations.values() for n in resources.values()]
    return claim.generation is None and bool(amounts) and max(amounts) < _TOO_LARGE


def take(connection: Connection, claim: Claim) -> None:
    """Make the claim true. Raises NotSimple when the transaction has to be taken back."""
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
    }
    if connection.scalar(_TAKE, bound) != len(lines):
        raise NotSimple
