"""Metadata definitions that administrators write. Refusals are in Glance's words."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from common import clock, ids
from common.errors import Conflict, Forbidden, NotFound
from conductor.rpc.images import MetadefItem, MetadefNamespace
from db.schema import metadef_items, metadef_namespaces

_N, _I = metadef_namespaces.c, metadef_items.c
_TAG = "tag"


def create(
    connection: sa.Connection, namespace: MetadefNamespace, items: Sequence[MetadefItem]
) -> None:
    """Write a namespace and what it defines. Raises Conflict."""
    _require_free(connection, namespace.name)
    now, namespace_id = clock.utcnow(), ids.new_uuid()
    values = {"id": namespace_id, "created_at": now, "updated_at": now, **_columns(namespace)}
    connection.execute(metadef_namespaces.insert().values(values))
    _add(connection, namespace_id, namespace.name, items, {})


def update(connection: sa.Connection, name: str, namespace: MetadefNamespace) -> None:
    """Change a namespace. Raises NotFound, Conflict."""
    row = _locked(connection, name)
    if namespace.name != name:
        _require_free(connection, namespace.name)
    changed = metadef_namespaces.update().where(_N.id == row.id)
    connection.execute(changed.values(updated_at=clock.utcnow(), **_columns(namespace)))


def delete(connection: sa.Connection, name: str) -> None:
    """Delete a namespace and what it defines. Raises NotFound, Forbidden."""
    row = _locked(connection, name)
    if row.protected:
        raise Forbidden(
            f"Metadata definition namespace {name} is protected and cannot be deleted."
        )
    connection.execute(metadef_items.delete().where(_I.namespace_id == row.id))
    connection.execute(metadef_namespaces.delete().where(_N.id == row.id))


def change(
    connection: sa.Connection,
    namespace: str,
    kind: str,
    removed: Sequence[str] | None,
    items: Sequence[MetadefItem],
) -> None:
    """See ``ConductorRpc.change_metadef_items``."""
    row = _locked(connection, namespace)
    query = sa.select(_I.name, _I.created_at).where(_I.namespace_id == row.id, _I.kind == kind)
    there = {each.name: each.created_at for each in connection.execute(query)}
    gone = there.keys() if removed is None else removed
    for name in gone:
        if name not in there:
            raise NotFound(
                f"The metadata definition {kind} with name={name} was not found in "
                f"namespace={namespace}."
            )
    if row.protected and gone and not items:
        raise Forbidden(f"Metadata definition {kind} is protected and cannot be deleted.")
    _remove(connection, row.id, kind, gone)
    kept = there.keys() - set(gone)
    _require_new(namespace, kind, [*kept, *(one.name for one in items)])
    before = {one.name: there[old] for one, old in zip(items, gone, strict=False)}
    _add(connection, row.id, namespace, items, before if removed is not None else {})


def _remove(
    connection: sa.Connection, namespace_id: str, kind: str, names: Collection[str]
) -> None:
    connection.execute(
        metadef_items.delete().where(
            _I.namespace_id == namespace_id, _I.kind == kind, _I.name.in_(list(names))
        )
    )


def _add(
    connection: sa.Connection,
    namespace_id: str,
    namespace: str,
    items: Sequence[MetadefItem],
    before: Mapping[str, datetime.datetime],
) -> None:
    """Write items; ``before``: when those were made that they take the place of."""
    for kind in {one.kind for one in items}:
        _require_new(namespace, kind, [one.name for one in items if one.kind == kind])
    now = clock.utcnow()
    rows = [
        {
            "namespace_id": namespace_id,
            "kind": one.kind,
            "name": one.name,
            "body": dict(one.body),
            "created_at": before.get(one.name, now),
            "updated_at": now,
        }
        for one in items
    ]
    if rows:
        connection.execute(metadef_items.insert(), rows)


def _require_new(namespace: str, kind: str, names: Sequence[str]) -> None:
    """Raise Conflict for a name that is given twice; names of tags are case-insensitive."""
    seen = set()
    for name in names:
        key = name.lower() if kind == _TAG else name
        if key in seen:
            raise Conflict(
                f"A metadata definition {kind} with name={name} already exists in "
                f"namespace={namespace}."
            )
        seen.add(key)


def _require_free(connection: sa.Connection, name: str) -> None:
    if connection.execute(sa.select(_N.id).where(_N.name == name)).first() is not None:
        raise Conflict(f"The metadata definition namespace={name} already exists.")


def _locked(connection: sa.Connection, name: str) -> Any:
    query = sa.select(metadef_namespaces).where(_N.name == name).with_for_update()
    row = connection.execute(query).first()
    if row is None:
        raise NotFound(f"Metadata definition namespace={name} was not found.")
    return row


def _columns(namespace: MetadefNamespace) -> dict[str, Any]:
    return {
        "name": namespace.name,
        "display_name": namespace.display_name,
        "description": namespace.description,
        "visibility": namespace.visibility,
        "protected": namespace.protected,
        "project_id": namespace.project_id,
    }
