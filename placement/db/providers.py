"""Resource providers: reading, locking and creating them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from common.errors import Invalid, NotFound
from placement.db import fast, schema, sequence
from placement.db.engine import Database
from placement.errors import ConcurrentUpdate, DuplicateName

_P = schema.providers.c
_ROOT = schema.providers.alias("root")
_PARENT = schema.providers.alias("parent")
_SELECT = sa.select(
    _P.id,
    _P.uuid,
    _P.name,
    _P.generation,
    _ROOT.c.uuid.label("root_uuid"),
    _PARENT.c.uuid.label("parent_uuid"),
    _P.updated_at,
    _P.root_id,
    _P.parent_id,
).select_from(
    schema.providers.join(_ROOT, _ROOT.c.id == _P.root_id).outerjoin(
        _PARENT, _PARENT.c.id == _P.parent_id
    )
)
_ONE = _SELECT.where(_P.uuid == sa.bindparam("wanted"))
_LOCK = (
    sa.select(_P.id, _P.uuid, _P.generation, _P.root_id, _P.parent_id)
    .where(_P.uuid == sa.bindparam("wanted"))
    .with_for_update()
)
_INSERT = sa.insert(schema.providers).values(changed=sequence.NOW)
_STAMP = (
    sa.update(schema.providers)
    .where(_P.id == sa.bindparam("provider"))
    .values(
        changed=sequence.NOW,
        updated_at=sa.bindparam("now"),
        generation=_P.generation + sa.bindparam("more"),
    )
)


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """A provider with the API's fields; times in seconds since the epoch."""

    id: int
    uuid: str
    name: str
    generation: int
    root_uuid: str
    parent_uuid: str | None
    updated_at: int
    root_id: int
    parent_id: int | None


def find(connection: Connection, uuid: str) -> ProviderRow:
    """Return the provider; one statement. Raises NotFound."""
    row = connection.execute(_ONE, {"wanted": uuid}).one_or_none()
    if row is None:
        raise _missing(uuid)
    return ProviderRow(*row)


def listed(
    connection: Connection,
    *,
    name: str | None = None,
    uuid: str | None = None,
    ids: Sequence[int] | None = None,
) -> list[ProviderRow]:
    """Return providers by name, UUID and internal ID (None: any), oldest first."""
    query = _SELECT.order_by(_P.id)
    if name is not None:
        query = query.where(_P.name == name)
    if uuid is not None:
        query = query.where(_P.uuid == uuid)
    if ids is not None:
        query = query.where(_P.id.in_(ids))
    return [ProviderRow(*row) for row in connection.execute(query)]


class Locked(NamedTuple):
    """A provider that is locked for the transaction."""

    id: int
    generation: int


def lock(connection: Connection, uuid: str, generation: int | None = None) -> Locked:
    """Lock the provider for the transaction.

    Raises NotFound; ConcurrentUpdate when `generation` is given and not the current one.
    """
    row = connection.execute(_LOCK, {"wanted": uuid}).one_or_none()
    if row is None:
        raise _missing(uuid)
    if generation is not None and row.generation != generation:
        raise ConcurrentUpdate
    return Locked(row.id, row.generation)


def stamp(connection: Connection, provider_id: int, *, bump: bool = True) -> None:
    """Record that a locked provider changed in this transaction; `bump` moves its generation.

    Takes the next value of the change sequence: call it last.
    """
    sequence.advance(connection)
    connection.execute(
        _STAMP,
        {"provider": provider_id, "now": sequence.seconds(), "more": 1 if bump else 0},
    )


def add(database: Database, uuid: str, name: str, parent_uuid: str | None) -> ProviderRow:
    """As `create`, in a transaction of its own."""
    if parent_uuid is None and database.is_postgresql:
        made = database.write(lambda c: fast.create(c, uuid, name), alone=True)
        if made is not None:
            provider_id, now = made
            return ProviderRow(
                provider_id, uuid, name, 0, uuid, None, now, root_id=provider_id, parent_id=None
            )
    return database.write(lambda connection: create(connection, uuid, name, parent_uuid))


def create(connection: Connection, uuid: str, name: str, parent_uuid: str | None) -> ProviderRow:
    """Insert a provider and return it.

    Raises IntegrityError for a name or UUID that is taken (`duplicate` finds which), and Invalid
    for a parent that doesn't exist or is the provider itself.
    """
    if parent_uuid == uuid:
        raise cannot(
            "create",
            "parent provider UUID cannot be same as UUID. Please set parent provider UUID to "
            "None if there is no parent.",
        )
    parent = parent_to_be(connection, parent_uuid)
    now = sequence.seconds()
    values: dict[str, Any] = {
        "uuid": uuid,
        "name": name,
        "generation": 0,
        "parent_id": parent.id if parent else None,
        "root_id": parent.root_id if parent else None,
        "created_at": now,
        "updated_at": now,
    }
    sequence.advance(connection)
    result = connection.execute(_INSERT, values)
    (provider_id,) = result.inserted_primary_key or (0,)
    if parent is None:
        connection.execute(
            sa.update(schema.providers).where(_P.id == provider_id).values(root_id=provider_id)
        )
    root_id = parent.root_id if parent else provider_id
    root_uuid = uuid if parent is None else _uuid_of(connection, root_id)
    return ProviderRow(
        provider_id, uuid, name, 0, root_uuid, parent_uuid, now, root_id, values["parent_id"]
    )


def _uuid_of(connection: Connection, provider_id: int) -> str:
    return str(connection.scalar(sa.select(_P.uuid).where(_P.id == provider_id)))


def parent_to_be(connection: Connection, uuid: str | None) -> Any:
    """Return the locked row of a parent to be, None for none. Raises Invalid."""
    if uuid is None:
        return None
    row = connection.execute(_LOCK, {"wanted": uuid}).one_or_none()
    if row is None:
        raise cannot("create", "parent provider UUID does not exist.")
    return row


def _missing(uuid: str) -> NotFound:
    return NotFound(f"No resource provider with uuid {uuid} found")


def cannot(action: str, reason: str) -> Invalid:
    """Return the error with the reason why a provider can't be created or changed."""
    return Invalid(f"Object action {action} failed because: {reason}")


def duplicate(connection: Connection, uuid: str, name: str) -> DuplicateName:
    """Return the error that names what of a new provider is taken."""
    taken = []
    for column, value in ((_P.name, name), (_P.uuid, uuid)):
        if connection.execute(sa.select(_P.id).where(column == value)).first():
            taken.append(f"{column.name}: {value}")
    return DuplicateName(
        f"Conflicting resource provider {', '.join(taken) or name} already exists."
    )
