"""Rows of a subquery as one JSON value, so that a statement reads what belongs to its rows too."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class _Rows(FunctionElement[Any]):
    """A list of all rows, in any order: each a list of its values, or its only value."""

    type = sa.JSON()
    inherit_cache = True


#: dialect → the functions that make a list of rows, and a row
_FUNCTIONS = {
    "sqlite": ("json_group_array", "json_array"),
    "postgresql": ("json_agg", "json_build_array"),
    "mysql": ("JSON_ARRAYAGG", "JSON_ARRAY"),
}
_FUNCTIONS["mariadb"] = _FUNCTIONS["mysql"]
#: for a statement that is only shown, as in a log
_SHOWN = ("json_list", "json_row")


@compiles(_Rows)  # type: ignore[no-untyped-call, untyped-decorator, unused-ignore]
def _aggregated(element: _Rows, compiler: Any, **options: Any) -> str:
    listed, row = _FUNCTIONS.get(compiler.dialect.name, _SHOWN)
    values = compiler.process(element.clauses, **options)
    return f"{listed}({values})" if len(element.clauses) == 1 else f"{listed}({row}({values}))"


def rows_of(*values: sa.ColumnElement[Any]) -> _Rows:
    """Return an aggregate function: the values of all rows, as ``[[value, …], …]``, in any order.

    Where it is one value of each: ``[value, …]``.
    None, or an empty list, where there are no rows. Truth values may come as 0 and 1, and times
    as the database's text, which sorts as they do.
    """
    return _Rows(*values)
