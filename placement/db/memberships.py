"""Traits and aggregates of a provider."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from common.errors import Invalid
from placement.db import providers, schema
from placement.errors import ConcurrentUpdate

_T = schema.provider_traits.c
_G = schema.provider_aggregates.c
_MOVED = (
    "Resource provider's generation already changed. Please update the generation and try again."
)


def traits(connection: Connection, provider_id: int) -> tuple[list[str], int | None]:
    """Return a provider's traits by name, and when the newest of them was made."""
    rows = connection.execute(
        sa.select(_T.trait, schema.traits.c.created_at)
        .join(schema.traits, schema.traits.c.name == _T.trait)
        .where(_T.provider_id == provider_id)
        .order_by(_T.trait)
    ).all()
    return [row.trait for row in rows], max((row.created_at for row in rows), default=None)


def set_traits(
    connection: Connection, uuid: str, wanted: Iterable[str], generation: int | None
) -> None:
    """Make `wanted` the provider's traits; the generation moves only when that changes any.

    Raises NotFound, ConcurrentUpdate, Invalid (a trait doesn't exist).
    """
    provider_id = _lock(connection, uuid, generation)
    names = set(wanted)
    _require_traits(connection, names)
    there = set(traits(connection, provider_id)[0])
    if there == names:
        return
    connection.execute(
        sa.delete(schema.provider_traits).where(
            _T.provider_id == provider_id, _T.trait.in_(there - names)
        )
    )
    rows = [{"provider_id": provider_id, "trait": name} for name in sorted(names - there)]
    if rows:
        connection.execute(sa.insert(schema.provider_traits), rows)
    providers.stamp(connection, provider_id)


def aggregates(connection: Connection, provider_id: int) -> list[str]:
    """Return the UUIDs of the aggregates a provider is in."""
    query = sa.select(_G.aggregate_uuid).where(_G.provider_id == provider_id)
    return list(connection.scalars(query.order_by(_G.aggregate_uuid)))


def set_aggregates(
    connection: Connection, uuid: str, wanted: Iterable[str], generation: int | None
) -> None:
    """Make `wanted` the provider's aggregates.

    With `generation` (microversion 1.19) it must be the current one, and moves; without, the
    generation stays as it is. Raises NotFound, ConcurrentUpdate.
    """
    provider_id = _lock(connection, uuid, generation)
    names = set(wanted)
    there = set(aggregates(connection, provider_id))
    connection.execute(
        sa.delete(schema.provider_aggregates).where(
            _G.provider_id == provider_id, _G.aggregate_uuid.in_(there - names)
        )
    )
    rows = [{"provider_id": provider_id, "aggregate_uuid": u} for u in sorted(names - there)]
    if rows:
        connection.execute(sa.insert(schema.provider_aggregates), rows)
    providers.stamp(connection, provider_id, bump=generation is not None)


def _lock(connection: Connection, uuid: str, generation: int | None) -> int:
    try:
        return providers.lock(connection, uuid, generation)
    except ConcurrentUpdate as error:
        raise ConcurrentUpdate(_MOVED) from error


def _require_traits(connection: Connection, names: set[str]) -> None:
    column = schema.traits.c.name
    missing = names - set(connection.scalars(sa.select(column).where(column.in_(names))))
    if missing:
        raise Invalid(f"No such trait {', '.join(sorted(missing))}")
