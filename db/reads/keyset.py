"""Pages of a sorted list, from the row after the marker on (keyset pagination).

The cost of a page doesn't depend on how far into the list it is: one statement finds the marker's
sort values, one reads the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common.errors import NotFound


@dataclass(frozen=True)
class Sort:
    """One sort key. The expression is never null: a null has no place in an order."""

    expression: sa.ColumnElement[Any]
    descending: bool = False

    def turned(self) -> Sort:
        """Return the same key in the other direction."""
        return Sort(self.expression, not self.descending)


@dataclass(frozen=True)
class Page:
    """The requested part of a list; `backwards` is the page before the marker."""

    limit: int | None = None
    marker: str | int | None = None
    backwards: bool = False


class MarkerNotFound(NotFound):
    """The marker doesn't exist, or may not be seen."""

    code = "micronova.marker_not_found"
    sentence = "The marker could not be found."


def read(
    connection: sa.Connection,
    statement: sa.Select[Any],
    order: Sequence[Sort],
    page: Page,
    key: sa.ColumnElement[Any],
    *,
    visible: Sequence[sa.ColumnElement[bool]],
) -> Sequence[sa.Row[Any]]:
    """Return the rows of `statement` in `order` that make up `page`; at most two statements.

    `key` is the column that markers are of, unique among the visible rows; the last sort key must
    be it, or as unique. `visible` are conditions on visible rows: they apply to the page and to
    the marker, whose position would reveal its values. The marker's row needs not satisfy the
    filters that `statement` has besides: it may have changed since its page.
    Raises MarkerNotFound.
    """
    statement = statement.where(*visible)
    if page.backwards:
        order = [sort.turned() for sort in order]
    if page.marker is not None:
        marked = [key == page.marker, *visible]
        statement = statement.where(after(order, _values(connection, statement, order, marked)))
    statement = statement.order_by(
        *(sort.expression.desc() if sort.descending else sort.expression for sort in order)
    )
    if page.limit is not None:
        statement = statement.limit(page.limit)
    rows = connection.execute(statement).all()
    return rows[::-1] if page.backwards else rows


def _values(
    connection: sa.Connection,
    statement: sa.Select[Any],
    order: Sequence[Sort],
    marked: Sequence[sa.ColumnElement[bool]],
) -> Sequence[Any]:
    """Return the sort values of the row that satisfies `marked`."""
    source = statement.get_final_froms()
    row = connection.execute(
        sa.select(*(sort.expression for sort in order)).select_from(*source).where(*marked)
    ).first()
    if row is None:
        raise MarkerNotFound
    return tuple(row)


def after(order: Sequence[Sort], values: Sequence[Any]) -> sa.ColumnElement[bool]:
    """Return the condition of the rows that come after the one with these sort values."""
    alternatives = []
    for position, (sort, value) in enumerate(zip(order, values, strict=True)):
        beyond = sort.expression < value if sort.descending else sort.expression > value
        equal = [
            earlier.expression == known
            for earlier, known in zip(order[:position], values[:position], strict=True)
        ]
        alternatives.append(sa.and_(*equal, beyond))
    return sa.or_(*alternatives)
