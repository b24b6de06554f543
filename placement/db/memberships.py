"""Traits and aggregates of a provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from common.errors import Invalid
from placement.db import fast, providers, schema
from placement.db.engine import Database
from placement.db.names import traits as all_traits
from placement.errors import ConcurrentUpdate

_T = schema.provider_traits.c
_G = schema.provider_aggregates.c
_PROVIDER: sa.BindParameter[int] = sa.bindparam("provider", type_=sa.Integer)
_TRAITS_OF = sa.select(_T.trait).where(_T.provider_id == _PROVIDER)
_AGGREGATES_OF = (
    sa.select(_G.aggregate_uuid).where(_G.provider_id == _PROVIDER).order_by(_G.aggregate_uuid)
)
_UUID = schema.providers.c.uuid
_AMONG = _UUID.in_(sa.bindparam("uuids", expanding=True))
_EXISTING = sa.select(_UUID).where(_AMONG)
_OF_MANY = tuple(
    sa.select(_UUID, column)
    .join_from(schema.providers, column.table, column.table.c.provider_id == schema.providers.c.id)
    .where(_AMONG)
    .order_by(column)
    for column in (_T.trait, _G.aggregate_uuid)
)
_INSERT_ALL = {
    column.name: sa.text(
        f"INSERT INTO {column.table.name} (provider_id, {column.name})"
        " SELECT :provider, unnest(CAST(:names AS varchar[]))"
    )
    for column in (_T.trait, _G.aggregate_uuid)
}
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


def put_traits(
    database: Database, uuid: str, wanted: Iterable[str], generation: int
) -> tuple[int, list[str], int | None]:
    """As `set_traits`, in a transaction of its own."""
    names = set(wanted)

    def first(connection: Connection) -> Mapping[str, int] | None:
        known = all_traits.among(connection, names)
        if known.keys() != names or not fast.first_traits(connection, uuid, names, generation):
            return None
        return known

    known = database.write(first, alone=True) if database.is_postgresql else None
    if known:
        return generation + 1, sorted(names), max(known.values())
    return database.write(lambda connection: set_traits(connection, uuid, names, generation))


def set_traits(
    connection: Connection, uuid: str, wanted: Iterable[str], generation: int | None
) -> tuple[int, list[str], int | None]:
    """Make `wanted` the provider's traits; the generation moves only when that changes any.

    Returns the generation, the traits by name, and when the newest of them was made. Raises
    NotFound, ConcurrentUpdate, Invalid (a trait doesn't exist).
    """
    names = set(wanted)
    known = all_traits.among(connection, names)
    modified = max(known.values(), default=None)
    provider = _lock(connection, uuid, generation)
    _require_traits(names, known)
    there = set(connection.scalars(_TRAITS_OF, {"provider": provider.id}))
    if there == names:
        return provider.generation, sorted(names), modified
    _replace(connection, _T.trait, provider.id, there, names)
    providers.stamp(connection, provider.id)
    return provider.generation + 1, sorted(names), modified


def _replace(
    connection: Connection,
    column: sa.Column[str],
    provider_id: int,
    there: set[str],
    wanted: set[str],
) -> None:
    """Delete and insert what differs, in the table of `column`."""
    table = column.table
    assert isinstance(table, sa.Table)
    if there - wanted:
        connection.execute(
            sa.delete(table).where(
                table.c.provider_id == provider_id, column.in_(sorted(there - wanted))
            )
        )
    new = sorted(wanted - there)
    if new and connection.dialect.name == "postgresql":
        # One statement for all rows.
        connection.execute(_INSERT_ALL[column.name], {"provider": provider_id, "names": new})
    elif new:
        rows = [{"provider_id": provider_id, column.name: name} for name in new]
        connection.execute(sa.insert(table), rows)


def aggregates(connection: Connection, provider_id: int) -> list[str]:
    """Return the UUIDs of the aggregates a provider is in."""
    return list(connection.scalars(_AGGREGATES_OF, {"provider": provider_id}))


def of_many(
    connection: Connection, uuids: Iterable[str]
) -> dict[str, tuple[list[str], list[str]]]:
    """Return {provider: (traits, aggregates)} of those providers that exist. Three statements."""
    given = {"uuids": list(uuids)}
    found: dict[str, tuple[list[str], list[str]]] = {
        uuid: ([], []) for uuid in connection.scalars(_EXISTING, given)
    }
    for number, query in enumerate(_OF_MANY):
        for uuid, name in connection.execute(query, given):
            if uuid in found:
                found[uuid][number].append(name)
    return found


def put_aggregates(
    database: Database, uuid: str, wanted: Iterable[str], generation: int | None
) -> int:
    """As `set_aggregates`, in a transaction of its own."""
    uuids = set(wanted)
    if generation is not None and database.is_postgresql:
        first = generation
        if database.write(lambda c: fast.first_aggregates(c, uuid, uuids, first), alone=True):
            return generation + 1
    return database.write(lambda connection: set_aggregates(connection, uuid, uuids, generation))


def set_aggregates(
    connection: Connection, uuid: str, wanted: Iterable[str], generation: int | None
) -> int:
    """Make `wanted` the provider's aggregates and return its generation.

    With `generation` (microversion 1.19) it must be the current one, and is incremented; without,
    the generation is not changed. Raises NotFound, ConcurrentUpdate.
    """
    uuids = set(wanted)
    provider = _lock(connection, uuid, generation)
    _replace(
        connection,
        _G.aggregate_uuid,
        provider.id,
        set(aggregates(connection, provider.id)),
        uuids,
    )
    bump = generation is not None
    providers.stamp(connection, provider.id, bump=bump)
    return provider.generation + bump


def _lock(connection: Connection, uuid: str, generation: int | None) -> providers.Locked:
    try:
        return providers.lock(connection, uuid, generation)
    except ConcurrentUpdate as error:
        raise ConcurrentUpdate(_MOVED) from error


def _require_traits(names: set[str], known: Mapping[str, int]) -> None:
    missing = names - known.keys()
    if missing:
        raise Invalid(f"No such trait {', '.join(sorted(missing))}")
