"""Statements of PostgreSQL's that are prepared once on each connection and sent as they are.

What SQLAlchemy and psycopg do for a statement (compiling, adapting, cursors, rows) costs several
times what PostgreSQL's library needs for the journey itself. The few statements that every claim,
every search and every new provider makes go without: values are text, answers are text.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from sqlalchemy.engine import Connection

_numbers = itertools.count(1)
_PREPARED = "placement.prepared"


class Statement:
    """One statement; parameters are $1, $2 …, each cast to its type in the text.

    The connection must be in autocommit, outside any transaction.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._name = b"placement_%d" % next(_numbers)

    def row(self, connection: Connection, *values: str | int | None) -> Sequence[str] | None:
        """Run it and return its one row as text.

        None when the database refused or can't be reached, in which case nothing was written, or
        all was written and the answer was lost: the caller's general way finds out.
        """
        from psycopg import OperationalError

        try:
            return self._row(connection, values)
        except OperationalError:
            # The pool must not give the connection to anybody again.
            connection.invalidate()
            connection.rollback()
            return None

    def _row(
        self, connection: Connection, values: Sequence[str | int | None]
    ) -> Sequence[str] | None:
        """Run it. Raises psycopg's OperationalError if the connection is lost."""
        from psycopg import OperationalError, pq

        pooled: Any = connection.connection
        pgconn = pooled.driver_connection.pgconn
        prepared: set[bytes] = connection.info.setdefault(_PREPARED, set())
        if self._name not in prepared:
            made = pgconn.prepare(self._name, self.text.encode())
            if pgconn.status != pq.ConnStatus.OK:
                raise OperationalError("The connection is lost.")
            if made.status != pq.ExecStatus.COMMAND_OK:
                return None
            prepared.add(self._name)
        given = [
            None if value is None else str(value).encode(errors="surrogatepass")
            for value in values
        ]
        if any(value and b"\0" in value for value in given):
            # The text would end there.
            return None
        for listener in connection.dispatch.before_cursor_execute:
            # Listeners for statements are called for prepared statements as well.
            listener(connection, None, self.text, values, None, False)
        answer = pgconn.exec_prepared(self._name, given)
        if pgconn.status != pq.ConnStatus.OK:
            raise OperationalError("The connection is lost.")
        if answer.status != pq.ExecStatus.TUPLES_OK or answer.ntuples != 1:
            return None
        return [(answer.get_value(0, n) or b"").decode() for n in range(answer.nfields)]
