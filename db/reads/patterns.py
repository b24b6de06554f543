"""Regular expressions and JSON lists in WHERE, alike on SQLite, PostgreSQL and MariaDB."""

from __future__ import annotations

import re
import re._constants as code  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from common.errors import Invalid

_PLAIN = re.compile(r"[\w @,:;=/-]*")
_LONGEST = 255
_MOST_REPEATS = 3
_REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT)


def matches(
    connection: sa.Connection, column: sa.ColumnElement[Any], pattern: str
) -> sa.ColumnElement[bool]:
    """Rows whose column holds the pattern somewhere; NULL never does.

    Raises Invalid for a pattern that the database must not be asked.
    """
    if not isinstance(column.type, sa.String):
        column = sa.cast(column, sa.String)
    if _PLAIN.fullmatch(pattern):
        return column.contains(pattern, autoescape=True)
    if connection.dialect.name == "sqlite":
        _check_cost(pattern)
    return column.regexp_match(pattern)


def _check_cost(pattern: str) -> None:
    """Refuse what may take for ever.

    SQLite matches in Python, which tries every way and holds up all threads meanwhile: choices
    within a repeat, and many repeats in a row, multiply the ways.
    """
    try:
        repeats = _repeats(parser.parse(pattern), within=False)
    except (re.error, RecursionError) as error:
        raise Invalid(f"The pattern {pattern} is no regular expression.") from error
    if repeats > _MOST_REPEATS or len(pattern) > _LONGEST:
        raise Invalid(
            f"The pattern {pattern} is too complex: it may have {_MOST_REPEATS} repeats and "
            f"{_LONGEST} characters."
        )


def _repeats(items: Iterable[Any], *, within: bool) -> int:
    """How many repeats a parsed pattern has. Raises Invalid for a choice within one."""
    count = 0
    for operator, argument in items:
        repeats = operator in _REPEATS and argument[1] > 1
        if within and (repeats or operator is code.BRANCH):
            raise Invalid("The pattern is too complex: a repeat holds a choice or a repeat.")
        count += repeats
        for part in _parts(operator, argument):
            count += _repeats(part, within=within or repeats)
    return count


def _parts(operator: Any, argument: Any) -> list[Any]:
    """The patterns within an item of a parsed pattern."""
    if operator is code.BRANCH:
        return list(argument[1])
    values = argument if isinstance(argument, tuple) else (argument,)
    return [value for value in values if isinstance(value, parser.SubPattern)]


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
