"""Moves inventories and their allocations between providers in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from common.errors import Invalid
from placement import ledger
from placement.claim import Claim
from placement.db import inventories, schema
from placement.db.claims import LOCK_CONSUMERS
from placement.errors import ConcurrentUpdate, InventoryInUse, ProviderUnknown, UnknownName

_P, _A = schema.providers.c, schema.allocations.c


class Wanted(NamedTuple):
    """The new inventories of a provider, and its expected generation."""

    generation: int
    inventories: inventories.Inventories


def reshape(connection: Connection, wanted: Mapping[str, Wanted], claims: Sequence[Claim]) -> None:
    """Write inventories ({provider UUID: Wanted}) and claims: all or none.

    Raises ProviderUnknown, ConcurrentUpdate, InventoryInUse, InventoryRefused, Invalid.
    """
    known = _lock(connection, wanted, [claim.consumer_uuid for claim in claims])
    for uuid, (generation, _) in wanted.items():
        _require(uuid, known.get(uuid), generation)
    try:
        # Removed inventories must exist until nothing is allocated from them; added ones before.
        for uuid, (_, given) in wanted.items():
            if given:
                there, _ = inventories.of(connection, known[uuid].id)
                inventories.replace(connection, uuid, {**there, **given}, None)
        ledger.write(connection, claims)
        for uuid, (_, given) in wanted.items():
            inventories.replace(connection, uuid, given, None)
    except UnknownName as error:
        raise Invalid(f"malformed reshaper data: {error.message}") from error
    except InventoryInUse as error:
        raise InventoryInUse(f"update conflict: {error.message}") from error


def _lock(
    connection: Connection, wanted: Mapping[str, Wanted], consumers: Sequence[str]
) -> Mapping[str, Any]:
    """Lock all that is involved, in the ledger's order; return the providers by UUID."""
    uuids = set(wanted)
    touched: sa.ColumnElement[bool] = _P.uuid.in_(uuids)
    if consumers:
        connection.execute(LOCK_CONSUMERS, {"consumers": list(consumers)})
        held = sa.select(_A.provider_id).where(_A.consumer_uuid.in_(consumers))
        touched = sa.or_(touched, _P.id.in_(held))
    rows = connection.execute(
        sa.select(_P.id, _P.uuid, _P.generation).where(touched).order_by(_P.id).with_for_update()
    )
    return {row.uuid: row for row in rows}


def _require(uuid: str, row: Any, generation: int) -> None:
    if row is None:
        raise ProviderUnknown(
            f"Resource provider {uuid} in inventories not found: "
            f"No resource provider with uuid {uuid} found"
        )
    if row.generation != generation:
        raise ConcurrentUpdate(
            f"resource provider generation conflict for provider {uuid}: "
            f"actual: {row.generation}, given: {generation}"
        )
