"""Metadata definitions: namespaces, and what they define."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from db.schema import metadef_items, metadef_namespaces

_N, _I = metadef_namespaces.c, metadef_items.c


@dataclass(frozen=True)
class Item:
    """A property, an object, a tag or an associated resource type."""

    kind: str
    name: str
    body: Mapping[str, Any]
    created_at: datetime.datetime
    updated_at: datetime.datetime


@dataclass(frozen=True)
class Namespace:
    """A namespace with all that it defines, by name."""

    name: str
    display_name: str | None
    description: str | None
    visibility: str
    protected: bool
    project_id: str
    created_at: datetime.datetime
    updated_at: datetime.datetime
    items: tuple[Item, ...]

    def of(self, kind: str) -> list[Item]:
        """Return what it defines of a kind."""
        return [one for one in self.items if one.kind == kind]

    def find(self, kind: str, name: str) -> Item | None:
        """Return one of a kind; None: it has none of this name."""
        return next((one for one in self.of(kind) if one.name == name), None)


def read(connection: sa.Connection, name: str | None = None) -> list[Namespace]:
    """Return all namespaces, or the one of a name."""
    query = sa.select(metadef_namespaces)
    of = sa.select(metadef_items)
    if name is not None:
        query = query.where(_N.name == name)
        of = of.where(_I.namespace_id.in_(sa.select(_N.id).where(_N.name == name)))
    rows = connection.execute(query.order_by(_N.name)).all()
    items: dict[str, list[Item]] = {row.id: [] for row in rows}
    for each in connection.execute(of.order_by(_I.kind, _I.name)):
        found = Item(each.kind, each.name, each.body, each.created_at, each.updated_at)
        items.setdefault(each.namespace_id, []).append(found)
    return [
        Namespace(
            row.name,
            row.display_name,
            row.description,
            row.visibility,
            row.protected,
            row.project_id,
            row.created_at,
            row.updated_at,
            tuple(items[row.id]),
        )
        for row in rows
    ]
