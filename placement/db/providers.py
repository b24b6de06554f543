"""Resource providers: reading, creating, moving and removing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from common.errors import Invalid, NotFound
from placement.db import schema, sequence
from placement.errors import (
    ConcurrentUpdate,
    DuplicateName,
    ProviderHasChildren,
    ProviderInUse,
)

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
#: how many removals are remembered for snapshots that follow, and how often old ones are forgotten
REMOVALS_KEPT, _PRUNE_EVERY = 10_000, 64
_INSERT = sa.insert(schema.providers).values(changed=sequence.NOW)
#: PostgreSQL has given the row its ID already when the other columns are computed
_INSERT_ROOT = _INSERT.values(
    root_id=sa.func.currval(sa.func.pg_get_serial_sequence(schema.providers.name, "id"))
)
_STAMP = (
    sa.update(schema.providers)
    .where(_P.id == sa.bindparam("provider"))
    .values(
        changed=sequence.NOW,
        updated_at=sa.bindparam("now"),
        generation=_P.generation + sa.bindparam("more"),
    )
)
_DEPENDENTS = (schema.inventories, schema.provider_aggregates, schema.provider_traits)


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """A provider as the API tells it; times in seconds since the epoch."""

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


def create(connection: Connection, uuid: str, name: str, parent_uuid: str | None) -> ProviderRow:
    """Insert a provider and return it.

    Raises IntegrityError for a name or UUID that is taken (`duplicate` tells which), and Invalid
    for a parent that doesn't exist or is the provider itself.
    """
    if parent_uuid == uuid:
        raise _cannot(
            "create",
            "parent provider UUID cannot be same as UUID. Please set parent provider UUID to "
            "None if there is no parent.",
        )
    parent = _parent(connection, parent_uuid)
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
    itself = parent is None and connection.dialect.name == "postgresql"
    if itself:
        del values["root_id"]
    result = connection.execute(_INSERT_ROOT if itself else _INSERT, values)
    (provider_id,) = result.inserted_primary_key or (0,)
    if parent is None and not itself:
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


def update(
    connection: Connection,
    uuid: str,
    name: str,
    parent_uuid: str | None,
    *,
    keep_parent: bool,
    may_move: bool,
) -> ProviderRow:
    """Rename a provider and set its parent (unless `keep_parent`); return it.

    Without `may_move` a parent can only be set where there is none. Raises NotFound,
    DuplicateName, and Invalid for a parent that isn't possible.
    """
    provider_id, _ = lock(connection, uuid)
    before = find(connection, uuid)
    values: dict[str, Any] = {"name": name}
    moved: list[int] = []
    if not keep_parent and parent_uuid != before.parent_uuid:
        moved = _subtree(connection, before)
        values["parent_id"], root_id = _new_place(
            connection, before, parent_uuid, moved, may_move=may_move
        )
    try:
        with connection.begin_nested():
            connection.execute(
                sa.update(schema.providers).where(_P.id == provider_id).values(values)
            )
    except exc.IntegrityError as error:
        raise DuplicateName(f"Conflicting resource provider {name} already exists.") from error
    sequence.advance(connection)
    stamped: dict[str, Any] = {"changed": sequence.NOW, "updated_at": sequence.seconds()}
    if moved:
        stamped["root_id"] = root_id
    connection.execute(
        sa.update(schema.providers).where(_P.id.in_(moved or [provider_id])).values(stamped)
    )
    return find(connection, uuid)


def remove(connection: Connection, uuid: str) -> None:
    """Delete a provider with its inventories, traits and aggregates.

    Raises NotFound, ProviderHasChildren, ProviderInUse (it has allocations).
    """
    try:
        provider_id, _ = lock(connection, uuid)
    except NotFound as error:
        raise NotFound(f"No resource provider with uuid {uuid} found for delete") from error
    children = sa.select(_P.id).where(_P.parent_id == provider_id).limit(1)
    if connection.execute(children).first():
        raise ProviderHasChildren(
            f"Unable to delete parent resource provider {uuid}: It has child resource providers."
        )
    users = sa.select(schema.allocations.c.used).where(
        schema.allocations.c.provider_id == provider_id
    )
    if connection.execute(users.limit(1)).first():
        raise ProviderInUse(
            f"Unable to delete resource provider {uuid}: Resource provider has allocations."
        )
    for table in _DEPENDENTS:
        connection.execute(sa.delete(table).where(table.c.provider_id == provider_id))
    connection.execute(
        sa.update(schema.providers).where(_P.id == provider_id).values(root_id=None)
    )
    connection.execute(sa.delete(schema.providers).where(_P.id == provider_id))
    sequence.advance(connection)
    connection.execute(
        sa.insert(schema.removed_providers).values(provider_id=provider_id, changed=sequence.NOW)
    )
    if provider_id % _PRUNE_EVERY == 0:
        _forget_old_removals(connection)


def _forget_old_removals(connection: Connection) -> None:
    """Keep the latest removals; a snapshot that is further behind is made anew."""
    c = schema.removed_providers.c
    oldest = connection.scalar(
        sa.select(c.changed).order_by(c.changed.desc()).offset(REMOVALS_KEPT).limit(1)
    )
    if oldest is not None:
        connection.execute(sa.delete(schema.removed_providers).where(c.changed <= oldest))
        sequence.pruned(connection, oldest)


def _parent(connection: Connection, uuid: str | None) -> Any:
    """Return the locked row of a parent to be, None for none."""
    if uuid is None:
        return None
    row = connection.execute(_LOCK, {"wanted": uuid}).one_or_none()
    if row is None:
        raise _cannot("create", "parent provider UUID does not exist.")
    return row


def _new_place(
    connection: Connection,
    before: ProviderRow,
    parent_uuid: str | None,
    moved: Sequence[int],
    *,
    may_move: bool,
) -> tuple[int | None, int]:
    """Return the internal IDs of the new parent and the new root."""
    parent = _parent(connection, parent_uuid)
    if before.parent_id is not None and not may_move:
        verb = "un-parenting" if parent is None else "re-parenting"
        raise _cannot("update", f"{verb} a provider is not currently allowed.")
    if parent is None:
        return None, before.id
    if parent.id in moved:
        raise _cannot("update", "creating loop in the provider tree is not allowed.")
    return parent.id, parent.root_id


def _subtree(connection: Connection, top: ProviderRow) -> list[int]:
    """Return the internal IDs of a provider and everything below it; locks the tree."""
    rows = connection.execute(
        sa.select(_P.id, _P.parent_id)
        .where(_P.root_id == top.root_id)
        .order_by(_P.id)
        .with_for_update()
    ).all()
    below = {top.id}
    grown = True
    while grown:
        more = {row.id for row in rows if row.parent_id in below} - below
        below |= more
        grown = bool(more)
    return sorted(below)


def _missing(uuid: str) -> NotFound:
    return NotFound(f"No resource provider with uuid {uuid} found")


def _cannot(action: str, reason: str) -> Invalid:
    return Invalid(f"Object action {action} failed because: {reason}")


def duplicate(connection: Connection, uuid: str, name: str) -> DuplicateName:
    """Return the error that tells what of a new provider is taken."""
    taken = []
    for column, value in ((_P.name, name), (_P.uuid, uuid)):
        if connection.execute(sa.select(_P.id).where(column == value)).first():
            taken.append(f"{column.name}: {value}")
    return DuplicateName(
        f"Conflicting resource provider {', '.join(taken) or name} already exists."
    )
