"""The change sequence, by which a reader finds what transactions have changed.

Every transaction stamps the rows it touches (column `changed`) with its place in the sequence, in
the same transaction, and a reader queries the rows whose place it hasn't seen.

On PostgreSQL the place is the transaction's own number and what a reader has seen is a
`pg_snapshot`: writers share no row, so they wait for nobody, and a transaction that was still
under way when the reader looked is exactly what the next look finds. Elsewhere the place is the
value of a counter (table `changes`) whose row lock is held until the commit, so that the order of
places is the order of commits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from common import clock
from placement.db import schema
from placement.db.prepared import Statement

_C = schema.changes.c
_MAIN, _EPOCH = 1, 2
_VALUE: sa.ScalarSelect[Any] = sa.select(_C.value).where(_C.id == _MAIN).scalar_subquery()


class _Place(FunctionElement[int]):
    """The place of the running transaction."""

    type = sa.BigInteger()
    inherit_cache = True


@compiles(_Place)  # type: ignore[no-untyped-call, untyped-decorator, unused-ignore]
def _counted(element: _Place, compiler: Any, **options: Any) -> str:
    return str(compiler.process(_VALUE, **options))


@compiles(_Place, "postgresql")  # type: ignore[no-untyped-call, untyped-decorator, unused-ignore]
def _numbered(element: _Place, compiler: Any, **options: Any) -> str:
    return "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"


#: the place of the running transaction, for `changed=` in an UPDATE or INSERT
NOW = _Place()
_next = _C.value + 1
_ADVANCE = sa.update(schema.changes).where(_C.id == _MAIN).values(value=_next)
_NAMES = _ADVANCE.values(names_at=_next)
_READ = sa.select(_C.value, _C.names_at, _C.pruned_at).where(_C.id == _MAIN)
_POSTGRESQL = (
    "SELECT CAST(pg_current_snapshot() AS text), c.names_at, c.pruned_at,"
    " concat(pg_postmaster_start_time(), ' ', e.tableoid, ' ', e.xmin)"
    f" FROM changes c, changes e WHERE c.id = {_MAIN} AND e.id = {_EPOCH}"
)
_READ_POSTGRESQL, _READ_PREPARED = sa.text(_POSTGRESQL), Statement(_POSTGRESQL)


class Position(NamedTuple):
    """The places that a reader has seen.

    All below `floor`, none from `ceiling` on; `seen` is the same in the database's own form.
    `names_at` changes with the lists of names, `pruned_at` is the last place whose removals are
    no longer recorded, and another `epoch` means another database, or a restored one.
    """

    floor: int
    ceiling: int
    seen: str
    names_at: int
    pruned_at: int
    epoch: str = ""

    def follows(self, before: Position) -> bool:
        """Return whether the changes since `before` are still known."""
        return (
            self.epoch == before.epoch
            and self.ceiling >= before.ceiling
            and self.pruned_at < before.floor
        )


def read(connection: Connection) -> Position:
    """Return the position of a reader that has seen everything visible now; one statement."""
    if connection.dialect.name != "postgresql":
        value, names_at, pruned_at = connection.execute(_READ).one()
        return Position(value + 1, value + 1, str(value), names_at, pruned_at)
    row = _READ_PREPARED.row(connection) or connection.execute(_READ_POSTGRESQL).one()
    seen, names_at, pruned_at, epoch = row
    floor, ceiling, _ = seen.split(":")
    return Position(int(floor), int(ceiling), seen, int(names_at), int(pruned_at), epoch)


_TO_COME = "CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint)"


class _Unseen(FunctionElement[bool]):
    """Whether a reader has not seen the place in a column."""

    type = sa.Boolean()
    inherit_cache = True


@compiles(_Unseen)  # type: ignore[no-untyped-call, untyped-decorator, unused-ignore]
def _all_unseen(element: _Unseen, compiler: Any, **options: Any) -> str:
    (column, _) = element.clauses
    return f"{compiler.process(column, **options)} IS NOT NULL"


@compiles(_Unseen, "postgresql")  # type: ignore[no-untyped-call, untyped-decorator, unused-ignore]
def _invisible(element: _Unseen, compiler: Any, **options: Any) -> str:
    column, seen = (compiler.process(one, **options) for one in element.clauses)
    # A place still to come is that of a row which was restored from an older server.
    return (
        f"{column} < (SELECT {_TO_COME})"
        f" AND NOT pg_visible_in_snapshot(CAST(CAST({column} AS text) AS xid8),"
        f" CAST({seen} AS pg_snapshot))"
    )


def unseen(column: sa.Column[int]) -> sa.ColumnElement[bool]:
    """Return the condition that `column` is a place not seen; parameters are `bounds()`."""
    floor: sa.BindParameter[int] = sa.bindparam("floor", type_=sa.BigInteger)
    seen: sa.BindParameter[str] = sa.bindparam("seen", type_=sa.String)
    return sa.and_(column >= floor, _Unseen(column, seen))


def bounds(position: Position) -> dict[str, Any]:
    """Return the parameters of `unseen()` for what a reader has seen."""
    return {"floor": position.floor, "seen": position.seen}


def advance(connection: Connection) -> None:
    """Take the next place, where places are counted; locks the counter until the commit."""
    if connection.dialect.name != "postgresql":
        connection.execute(_ADVANCE)


def names_changed(connection: Connection) -> None:
    """Take the next place: the list of traits or of resource classes changes."""
    connection.execute(_NAMES)


def pruned(connection: Connection, place: int) -> None:
    """Record that removals up to `place` are forgotten."""
    connection.execute(sa.update(schema.changes).where(_C.id == _MAIN).values(pruned_at=place))


def seconds() -> int:
    """Return the current time as the tables keep it."""
    return int(clock.seconds())
