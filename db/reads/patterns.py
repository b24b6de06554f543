"""Regular expressions and JSON lists in WHERE, alike on SQLite, PostgreSQL and MariaDB."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.dialects import postgresql

from common import regex
from common.errors import Invalid
from db import limits

_PLAIN = re.compile(r"[\w @,:;=/-]*")


def matches(column: sa.ColumnElement[Any], pattern: str) -> sa.ColumnElement[bool]:
    """Return the condition that the column contains the pattern; NULL never does.

    SQLite calls `common.regex`; the others have their own engines, and get only what that
    understands, so that a pattern means the same everywhere. Raises Invalid for any other.
    """
    if not isinstance(column.type, sa.String):
        column = sa.cast(column, sa.String)
    if _PLAIN.fullmatch(pattern):
        return column.contains(pattern, autoescape=True)
    regex.check(pattern)
    return column.regexp_match(pattern)


@contextlib.contextmanager
def bounded(searched: Sequence[str]) -> Iterator[None]:
    """Run a statement with these patterns. Raises Invalid if they take the database too long.

    Some patterns take PostgreSQL's and MariaDB's engines very long.
    """
    try:
        yield
    except exc.OperationalError as error:
        if searched and limits.exceeded(error):
            raise Invalid(
                f"Searching for {', '.join(searched)} takes too long; a plainer regular "
                "expression is needed."
            ) from error
        raise


def holds(
    connection: sa.Connection, column: sa.ColumnElement[Any], text: str
) -> sa.ColumnElement[bool]:
    """Return the condition that the JSON list contains the text."""
    return _HOLDS[connection.dialect.name](column, text)


def holds_beginning(
    connection: sa.Connection, column: sa.ColumnElement[Any], text: str
) -> sa.ColumnElement[bool]:
    """Return the condition that a text of the JSON list begins with the text, in any case."""
    return _BEGINS[connection.dialect.name](column, text)


def _sqlite(column: sa.ColumnElement[Any], text: str) -> sa.ColumnElement[bool]:
    items = sa.func.json_each(column).table_valued("value")
    return sa.exists(sa.select(1).select_from(items).where(items.c.value == text))


def _postgresql(column: sa.ColumnElement[Any], text: str) -> sa.ColumnElement[bool]:
    return sa.type_coerce(column, postgresql.JSONB).contains([text])


def _mysql(column: sa.ColumnElement[Any], text: str) -> sa.ColumnElement[bool]:
    return sa.func.json_contains(column, orjson.dumps(text).decode()) == 1


def _begins_sqlite(column: sa.ColumnElement[Any], text: str) -> sa.ColumnElement[bool]:
    items = sa.func.json_each(column).table_valued("value")
    return _any_begins(items, text)


def _begins_postgresql(column: sa.ColumnElement[Any], text: str) -> sa.ColumnElement[bool]:
    listed = sa.type_coerce(column, postgresql.JSONB)
    return _any_begins(sa.func.jsonb_array_elements_text(listed).table_valued("value"), text)


def _any_begins(items: sa.TableValuedAlias, text: str) -> sa.ColumnElement[bool]:
    value = sa.type_coerce(items.c.value, sa.String)
    found = value.istartswith(text, autoescape=True)
    return sa.exists(sa.select(1).select_from(items).where(found))


def _begins_mysql(column: sa.ColumnElement[Any], text: str) -> sa.ColumnElement[bool]:
    pattern = re.sub(r"([\\%_])", r"\\\1", text.lower()) + "%"
    return sa.func.json_search(sa.func.lower(column), "one", pattern).is_not(None)


_HOLDS: Mapping[str, Callable[[sa.ColumnElement[Any], str], sa.ColumnElement[bool]]] = {
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "mysql": _mysql,
    "mariadb": _mysql,
}
_BEGINS: Mapping[str, Callable[[sa.ColumnElement[Any], str], sa.ColumnElement[bool]]] = {
    "sqlite": _begins_sqlite,
    "postgresql": _begins_postgresql,
    "mysql": _begins_mysql,
    "mariadb": _begins_mysql,
}
