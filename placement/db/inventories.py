"""Inventories of a provider."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from common.errors import NotFound
from placement.db import fast, providers, schema, sequence
from placement.db.engine import Database
from placement.db.names import resource_classes
from placement.errors import ConcurrentUpdate, InventoryInUse, UnknownName

_I = schema.inventories.c
#: the fields of an inventory, in the API's order
FIELDS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
_OF = (
    sa.select(_I.resource_class, *(_I[name] for name in FIELDS), _I.updated_at)
    .where(_I.provider_id == sa.bindparam("provider"))
    .order_by(_I.resource_class)
)

_LOCK_WITH_ALL = (
    sa.select(schema.providers.c.id, schema.providers.c.generation, _I.resource_class)
    .select_from(
        schema.providers.outerjoin(schema.inventories, _I.provider_id == schema.providers.c.id)
    )
    .where(schema.providers.c.uuid == sa.bindparam("wanted"))
    .with_for_update(of=schema.providers)
)

#: {resource class: {field: value}}
Inventories = Mapping[str, Mapping[str, Any]]


def of(connection: Connection, provider_id: int) -> tuple[dict[str, dict[str, Any]], int | None]:
    """Return a provider's inventories and when they last changed (None: there are none)."""
    rows = connection.execute(_OF, {"provider": provider_id}).all()
    found = {row[0]: dict(zip(FIELDS, row[1:-1], strict=True)) for row in rows}
    return found, max((row.updated_at for row in rows), default=None)


def put(database: Database, uuid: str, wanted: Inventories, generation: int) -> int:
    """Replace the provider's inventories, as `replace`, in a transaction of its own."""

    def first(connection: Connection) -> bool:
        known = resource_classes.among(connection, wanted)
        return wanted.keys() == known.keys() and fast.first_inventories(
            connection, uuid, wanted, generation
        )

    if database.is_postgresql and database.write(first, alone=True):
        return generation + 1
    return database.write(lambda connection: replace(connection, uuid, wanted, generation))


def replace(connection: Connection, uuid: str, wanted: Inventories, generation: int | None) -> int:
    """Replace the provider's inventories and return its generation.

    Raises NotFound, ConcurrentUpdate, UnknownName, InventoryInUse (an inventory that would go
    has allocations). An inventory may be shrunk below what is allocated.
    """
    provider, there = _locked_with_all(connection, uuid, generation)
    _require_classes(connection, wanted)
    _delete(connection, provider.id, uuid, sorted(there - wanted.keys()))
    insert(connection, provider.id, {n: wanted[n] for n in wanted if n not in there})
    _update(connection, provider.id, {n: wanted[n] for n in wanted if n in there})
    return _stamped(connection, provider)


def add(connection: Connection, uuid: str, name: str, values: Mapping[str, Any]) -> int:
    """Add one inventory and return the provider's generation.

    Raises NotFound, UnknownName, ConcurrentUpdate (there is one of that class).
    """
    provider = _lock(connection, uuid, None)
    _require_classes(connection, [name])
    try:
        with connection.begin_nested():
            insert(connection, provider.id, {name: values})
    except exc.IntegrityError as error:
        raise ConcurrentUpdate(
            f"Update conflict: there is an inventory of class {name} already."
        ) from error
    return _stamped(connection, provider)


def change(
    connection: Connection, uuid: str, name: str, values: Mapping[str, Any], generation: int
) -> int:
    """Change one inventory and return the provider's generation.

    Raises NotFound, UnknownName (also where there is no inventory of it), ConcurrentUpdate.
    """
    provider = _lock(connection, uuid, generation)
    _require_classes(connection, [name])
    if name not in of(connection, provider.id)[0]:
        raise UnknownName(f"No inventory of class {name} found.")
    _update(connection, provider.id, {name: values})
    return _stamped(connection, provider)


def remove(connection: Connection, uuid: str, name: str) -> None:
    """Delete one inventory. Raises NotFound, ConcurrentUpdate (it has allocations)."""
    provider_id, _ = _lock(connection, uuid, None)
    if name not in of(connection, provider_id)[0]:
        raise NotFound(
            f"No inventory of class {name} found for delete: "
            f"No inventory of class {name} found for delete"
        )
    try:
        _delete(connection, provider_id, uuid, [name])
    except InventoryInUse as error:
        raise ConcurrentUpdate(
            f"Unable to delete inventory of class {name}: {error.message}"
        ) from error
    providers.stamp(connection, provider_id)


def _lock(connection: Connection, uuid: str, generation: int | None) -> providers.Locked:
    try:
        return providers.lock(connection, uuid, generation)
    except ConcurrentUpdate as error:
        raise _moved() from error


def _moved() -> ConcurrentUpdate:
    return ConcurrentUpdate("resource provider generation conflict")


def _locked_with_all(
    connection: Connection, uuid: str, generation: int | None
) -> tuple[providers.Locked, set[str]]:
    """Lock the provider; return it and the classes it has inventories of."""
    if generation is None:
        locked = _lock(connection, uuid, None)
        return locked, set(of(connection, locked.id)[0])
    # One statement: the inventories may be as they were before a wait for the lock, but then
    # the generation has moved, as it does with every change of them.
    rows = connection.execute(_LOCK_WITH_ALL, {"wanted": uuid}).all()
    if not rows:
        raise NotFound(f"No resource provider with uuid {uuid} found")
    if rows[0].generation != generation:
        raise _moved()
    names = {row.resource_class for row in rows if row.resource_class is not None}
    return providers.Locked(rows[0].id, rows[0].generation), names


def _stamped(connection: Connection, provider: providers.Locked) -> int:
    providers.stamp(connection, provider.id)
    return provider.generation + 1


def _require_classes(connection: Connection, names: Iterable[str]) -> None:
    wanted = set(names)
    for name in sorted(wanted - resource_classes.among(connection, wanted).keys()):
        raise UnknownName(f"No such resource class {name}.")


def _delete(connection: Connection, provider_id: int, uuid: str, names: list[str]) -> None:
    if not names:
        return
    a = schema.allocations.c
    of_provider = sa.select(a.resource_class).where(a.provider_id == provider_id)
    classes = schema.resource_classes.c
    used = connection.scalars(
        sa.select(classes.name)
        .where(classes.name.in_(names), classes.name.in_(of_provider))
        .order_by(classes.id)
    ).all()
    if used:
        raise InventoryInUse(
            f"Inventory for '{', '.join(used)}' on resource provider '{uuid}' in use."
        )
    connection.execute(
        sa.delete(schema.inventories).where(
            _I.provider_id == provider_id, _I.resource_class.in_(names)
        )
    )


def insert(connection: Connection, provider_id: int, wanted: Inventories) -> None:
    """Insert a provider's inventories of classes that it has no inventory of yet."""
    insert_all(connection, {provider_id: wanted})


def insert_all(connection: Connection, wanted: Mapping[int, Inventories]) -> None:
    """Insert inventories of providers, given by ID, as ``insert`` does.

    One statement for each inventory that many of them have, and one for all others.
    """
    now = sequence.seconds()
    alike: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for provider_id, each in wanted.items():
        for name, values in each.items():
            alike[name, *(values[field] for field in FIELDS)].append(provider_id)
    rows: list[dict[str, Any]] = []
    for (name, *numbers), those in alike.items():
        row = {"resource_class": name, **dict(zip(FIELDS, numbers, strict=True)), "now": now}
        if len(those) < _MANY:
            rows += [{**row, "provider_id": one} for one in those]
        else:
            connection.execute(_INSERT_ALIKE, {**row, "providers": those})
    if rows:
        connection.execute(_INSERT, rows)


_MANY = 4
"""From so many providers on a statement of their own is cheaper than a row each."""
_VALUES = {
    column.name: sa.bindparam(column.name, type_=column.type)
    for column in (schema.inventories.c[name] for name in ("resource_class", *FIELDS))
} | {
    "used": sa.literal(0),
    "changed": sa.literal(0),
    "created_at": sa.bindparam("now", type_=sa.BigInteger),
    "updated_at": sa.bindparam("now", type_=sa.BigInteger),
}
_INSERT = sa.insert(schema.inventories).values(
    provider_id=sa.bindparam("provider_id", type_=sa.Integer), **_VALUES
)
_INSERT_ALIKE = sa.insert(schema.inventories).from_select(
    ["provider_id", *_VALUES],
    sa.select(schema.providers.c.id, *_VALUES.values()).where(
        schema.providers.c.id.in_(sa.bindparam("providers", expanding=True))
    ),
)


def _update(connection: Connection, provider_id: int, wanted: Inventories) -> None:
    rows = [
        {"provider": provider_id, "class": name, **{f"new_{f}": values[f] for f in FIELDS}}
        for name, values in wanted.items()
    ]
    if rows:
        connection.execute(_UPDATE, [{**row, "now": sequence.seconds()} for row in rows])


_UPDATE = (
    sa.update(schema.inventories)
    .where(_I.provider_id == sa.bindparam("provider"), _I.resource_class == sa.bindparam("class"))
    .values(
        {name: sa.bindparam(f"new_{name}") for name in FIELDS}
        | {"updated_at": sa.bindparam("now")}
    )
)
