"""Changing resource providers: another name, another place in a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from placement.db import providers, schema, sequence
from placement.errors import DuplicateName

_P = schema.providers.c


def update(
    connection: Connection,
    uuid: str,
    name: str,
    parent_uuid: str | None,
    *,
    keep_parent: bool,
    may_move: bool,
) -> providers.ProviderRow:
    """Rename a provider and set its parent (unless `keep_parent`); return it.

    Without `may_move` a parent can only be set where there is none. Raises NotFound,
    DuplicateName, and Invalid for a parent that isn't possible.
    """
    provider_id, _ = providers.lock(connection, uuid)
    before = providers.find(connection, uuid)
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
    return providers.find(connection, uuid)


def _new_place(
    connection: Connection,
    before: providers.ProviderRow,
    parent_uuid: str | None,
    moved: Sequence[int],
    *,
    may_move: bool,
) -> tuple[int | None, int]:
    """Return the internal IDs of the new parent and the new root."""
    parent = providers.parent_to_be(connection, parent_uuid)
    if before.parent_id is not None and not may_move:
        verb = "un-parenting" if parent is None else "re-parenting"
        raise providers.cannot("update", f"{verb} a provider is not currently allowed.")
    if parent is None:
        return None, before.id
    if parent.id in moved:
        raise providers.cannot("update", "creating loop in the provider tree is not allowed.")
    return parent.id, parent.root_id


def _subtree(connection: Connection, top: providers.ProviderRow) -> list[int]:
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
