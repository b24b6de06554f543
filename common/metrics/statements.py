"""Counts and measures the statements of a SQLAlchemy engine."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from common.metrics import table

if TYPE_CHECKING:
    import sqlalchemy as sa

_VERB = re.compile(r"\s*([A-Za-z]+)")
_VERBS = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "BEGIN"})
_BEGAN = "micronova.statement_began"


def verb(statement: str) -> str:
    """Return the first word of a statement, ``OTHER`` for a rare one. Pure."""
    found = _VERB.match(statement)
    word = found[1].upper() if found else ""
    return word if word in _VERBS else "OTHER"


def measure(engine: sa.Engine, database: str, role: str) -> None:
    """Measure all statements of an engine from now on."""
    import sqlalchemy

    def before(
        connection: Any, _cursor: Any, statement: str, _values: Any, _context: Any, _many: bool
    ) -> None:
        table.SQL_STATEMENTS.count(database, role, verb(statement))
        connection.info[_BEGAN] = time.perf_counter()

    def after(
        connection: Any, _cursor: Any, _text: Any, _values: Any, _context: Any, _many: bool
    ) -> None:
        began = connection.info.pop(_BEGAN, None)
        if began is not None:
            table.SQL_SECONDS.observe(time.perf_counter() - began, database, role)

    def failed(_context: Any) -> None:
        table.SQL_ERRORS.count(database, role)

    sqlalchemy.event.listen(engine, "before_cursor_execute", before)
    sqlalchemy.event.listen(engine, "after_cursor_execute", after)
    sqlalchemy.event.listen(engine, "handle_error", failed)
