"""What lists of block storage share: filters, orders, pages and whose records are seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from db.reads import keyset
from db.reads.keyset import Page, Sort
from db.reads.properties import having

R = TypeVar("R")
F = TypeVar("F", bound="Filter")

Order = Sequence[tuple[str, bool]]
"""(name of a sortable column, descending)"""


@dataclass(frozen=True)
class Filter:
    """What a list shows; None: everything."""

    project_id: str | None = None
    """Whose; None: all projects'."""
    equal: Mapping[str, Any] = field(default_factory=dict)
    """Column → value; several: any of them."""
    name_part: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    nothing: bool = False
    """Whether a value is asked for that no record has."""


@dataclass(frozen=True)
class Listing(Generic[R, F]):
    """Reads records of one kind: a page of them, their number, or one."""

    query: sa.Select[Any]
    """The columns of a record, from its table and what is joined to it."""
    sortable: Mapping[str, sa.ColumnElement[Any]]
    """What a list may be sorted by → its column, which is never null; with id and created_at."""
    made: Callable[[sa.Connection, Sequence[sa.Row[Any]]], list[R]]
    """Returns the records of rows, and may read more for them."""
    columns: Mapping[str, sa.ColumnElement[Any]]
    """What filters name → its column."""
    conditions: Callable[[F], Sequence[sa.ColumnElement[bool]]] = lambda _: ()
    """Returns the conditions of a filter's own fields."""
    visible: Callable[[str | None], Sequence[sa.ColumnElement[bool]]] | None = None
    """Returns the conditions of the records that a project sees; its argument None: all projects.
    None: those whose project_id it is."""

    def page(
        self,
        connection: sa.Connection,
        wanted: F,
        order: Order = (),
        page: Page | None = None,
        offset: int = 0,
    ) -> list[R]:
        """Return records, by at most two queries; the newest first unless ``order`` is given.

        As in Cinder, equal ones are in the order of their time and ID, in the direction of the
        first sort key. Raises MarkerNotFound.
        """
        descending = order[0][1] if order else True
        named = {name for name, _ in order}
        rest = [(name, descending) for name in ("created_at", "id") if name not in named]
        sorts = [Sort(self.sortable[name], down) for name, down in (*order, *rest)]
        query = self.query.where(*self._where(wanted))
        if offset:
            query = query.offset(offset)
        visible = self._visible(wanted.project_id)
        key = self.sortable["id"]
        rows = keyset.read(connection, query, sorts, page or Page(), key, visible=visible)
        return self.made(connection, rows)

    def count(self, connection: sa.Connection, wanted: F) -> int:
        """Return how many records there are."""
        where = (*self._where(wanted), *self._visible(wanted.project_id))
        number = sa.func.count()
        # without a condition the columns alone say which tables it is of
        query = self.query.where(*where).with_only_columns(number, maintain_column_froms=True)
        return int(connection.execute(query).scalar_one())

    def get(
        self, connection: sa.Connection, record_id: str | int, project_id: str | None
    ) -> R | None:
        """Return a record; ``project_id``: who must see it, None: any project."""
        mine = self.sortable["id"] == record_id
        query = self.query.where(mine, *self._visible(project_id))
        return next(iter(self.made(connection, connection.execute(query).all())), None)

    def _visible(self, project_id: str | None) -> Sequence[sa.ColumnElement[bool]]:
        if self.visible is not None:
            return self.visible(project_id)
        return () if project_id is None else (self.columns["project_id"] == project_id,)

    def _where(self, wanted: F) -> list[sa.ColumnElement[bool]]:
        columns = self.columns
        found = [
            columns[name].in_(value) if isinstance(value, tuple) else columns[name] == value
            for name, value in wanted.equal.items()
        ]
        if wanted.name_part is not None:
            found.append(columns["name"].contains(wanted.name_part, autoescape=True))
        if wanted.metadata:
            found += having(columns["meta"], wanted.metadata)
        found += self.conditions(wanted)
        if wanted.nothing:
            found.append(sa.false())
        return found


def each(record: Callable[..., R]) -> Callable[[sa.Connection, Sequence[sa.Row[Any]]], list[R]]:
    """Return what makes records of rows that have their fields in order."""
    return lambda _, rows: [record(*tuple(row)) for row in rows]
