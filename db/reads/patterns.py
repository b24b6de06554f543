"""Regular expressions and JSON lists in WHERE, alike on SQLite, PostgreSQL and MariaDB."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from common.errors import Invalid

# SQLite matches in Python, whose matcher can take for ever on some patterns, holding up every
# thread: a repeat within a repeat is refused before it gets there.
_NESTED_REPEAT = re.compile(r"[+*}]\??\)(?:[+*?]|\{)")
_PLAIN = re.compile(r"[\w @,:;=/-]*")


def matches(column: sa.ColumnElement[Any], pattern: str) -> sa.ColumnElement[bool]:
    """Rows whose column holds the pattern somewhere; NULL never does. Raises Invalid."""
    if not isinstance(column.type, sa.String):
        column = sa.cast(column, sa.String)
    if _PLAIN.fullmatch(pattern):
        return column.contains(pattern, autoescape=True)
    if _NESTED_REPEAT.search(pattern) or len(pattern) > 255:
        raise Invalid("A pattern of the request repeats within a repeat or is too long.")
    return column.regexp_match(pattern)


def holds(connection: sa.Connection, column: sa.Column[Any], text: str) -> sa.ColumnElement[bool]:
    """Rows whose JSON list has the text among its items."""
    return _HOLDS[connection.dialect.name](column, text)


def _sqlite(column: sa.Column[Any], text: str) -> sa.ColumnElement[bool]:
    items = sa.func.json_each(column).table_valued("value")
    return sa.exists(sa.select(1).select_from(items).where(items.c.value == text))


def _postgresql(column: sa.Column[Any], text: str) -> sa.ColumnElement[bool]:
    return sa.type_coerce(column, postgresql.JSONB).contains([text])


def _mysql(column: sa.Column[Any], text: str) -> sa.ColumnElement[bool]:
    return sa.func.json_contains(column, orjson.dumps(text).decode()) == 1


_HOLDS: Mapping[str, Callable[[sa.Column[Any], str], sa.ColumnElement[bool]]] = {
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "mysql": _mysql,
    "mariadb": _mysql,
}
