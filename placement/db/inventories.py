"""Inventories of a provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from common.errors import NotFound
from placement.db import providers, schema, sequence
from placement.errors import ConcurrentUpdate, InventoryInUse, UnknownName

_I = schema.inventories.c
#: what the API tells of an inventory, in its order
FIELDS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
_OF = (
    sa.select(_I.resource_class, *(_I[name] for name in FIELDS), _I.updated_at)
    .where(_I.provider_id == sa.bindparam("provider"))
    .order_by(_I.resource_class)
)

#: {resource class: {field: value}}
Inventories = Mapping[str, Mapping[str, Any]]


def of(connection: Connection, provider_id: int) -> tuple[dict[str, dict[str, Any]], int | None]:
    """Return a provider's inventories and when they last changed (None: there are none)."""
    rows = connection.execute(_OF, {"provider": provider_id}).all()
    found = {row[0]: dict(zip(FIELDS, row[1:-1], strict=True)) for row in rows}
    return found, max((row.updated_at for row in rows), default=None)


def replace(connection: Connection, uuid: str, wanted: Inventories, generation: int | None) -> int:
    """Make `wanted` the provider's inventories and return its generation.

    Raises NotFound, ConcurrentUpdate, UnknownName, InventoryInUse (an inventory that would go
    has allocations). An inventory may be shrunk below what is allocated.
    """
    provider_id = _lock(connection, uuid, generation)
    there, _ = of(connection, provider_id)
    _require_classes(connection, wanted)
    _delete(connection, provider_id, uuid, sorted(there.keys() - wanted.keys()))
    _insert(connection, provider_id, {n: wanted[n] for n in wanted if n not in there})
    _update(connection, provider_id, {n: wanted[n] for n in wanted if n in there})
    return _stamped(connection, provider_id)


def add(connection: Connection, uuid: str, name: str, values: Mapping[str, Any]) -> int:
    """Add one inventory and return the provider's generation.

    Raises NotFound, UnknownName, ConcurrentUpdate (there is one of that class).
    """
    provider_id = _lock(connection, uuid, None)
    _require_classes(connection, [name])
    try:
        with connection.begin_nested():
            _insert(connection, provider_id, {name: values})
    except exc.IntegrityError as error:
        raise ConcurrentUpdate(
            f"Update conflict: there is an inventory of class {name} already."
        ) from error
    return _stamped(connection, provider_id)


def change(
    connection: Connection, uuid: str, name: str, values: Mapping[str, Any], generation: int
) -> int:
    """Change one inventory and return the provider's generation.

    Raises NotFound, UnknownName (also where there is no inventory of it), ConcurrentUpdate.
    """
    provider_id = _lock(connection, uuid, generation)
    _require_classes(connection, [name])
    if name not in of(connection, provider_id)[0]:
        raise UnknownName(f"No inventory of class {name} found.")
    _update(connection, provider_id, {name: values})
    return _stamped(connection, provider_id)


def remove(connection: Connection, uuid: str, name: str) -> None:
    """Delete one inventory. Raises NotFound, ConcurrentUpdate (it has allocations)."""
    provider_id = _lock(connection, uuid, None)
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


def _lock(connection: Connection, uuid: str, generation: int | None) -> int:
    try:
        return providers.lock(connection, uuid, generation)
    except ConcurrentUpdate as error:
        raise ConcurrentUpdate("resource provider generation conflict") from error


def _stamped(connection: Connection, provider_id: int) -> int:
    providers.stamp(connection, provider_id)
    generation = connection.scalar(
        sa.select(schema.providers.c.generation).where(schema.providers.c.id == provider_id)
    )
    return int(generation or 0)


def _require_classes(connection: Connection, names: Iterable[str]) -> None:
    column = schema.resource_classes.c.name
    wanted = set(names)
    there = set(connection.scalars(sa.select(column).where(column.in_(wanted))))
    for name in sorted(wanted - there):
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


def _insert(connection: Connection, provider_id: int, wanted: Inventories) -> None:
    now = sequence.seconds()
    rows = [
        {
            "provider_id": provider_id,
            "resource_class": name,
            **{field: values[field] for field in FIELDS},
            "used": 0,
            "changed": 0,
            "created_at": now,
            "updated_at": now,
        }
        for name, values in wanted.items()
    ]
    if rows:
        connection.execute(sa.insert(schema.inventories), rows)


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
