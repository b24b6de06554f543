"""Rows by what their column of names and values, a JSON object, has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa

#: what no path into JSON can name; SQLAlchemy writes names into paths as they are
_UNNAMEABLE = frozenset('"\\')


def having(column: sa.ColumnElement[Any], wanted: Mapping[str, str]) -> Iterator[Any]:
    """Yield the conditions that a row has these values.

    No metadata and no property has a name with a quotation mark or a backslash in it.
    """
    for name, value in wanted.items():
        if _UNNAMEABLE.isdisjoint(name):
            yield column[name].as_string() == value
        else:
            yield sa.false()
