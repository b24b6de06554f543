"""The change sequence: how a writer tells every snapshot what it changed."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db import schema

_C = schema.changes.c

#: the value the running transaction has taken, for `changed=` in an UPDATE or INSERT
NOW: sa.ScalarSelect[Any] = sa.select(_C.value).where(_C.id == 1).scalar_subquery()

_next = _C.value + 1
_USAGE = sa.update(schema.changes).where(_C.id == 1).values(value=_next)
_STRUCTURE = _USAGE.values(structure_at=_next)
_NAMES = _USAGE.values(names_at=_next)
_READ = sa.select(_C.value, _C.structure_at, _C.names_at).where(_C.id == 1)


class Position(NamedTuple):
    """How far the change sequence is: last change of anything, of structure, of names."""

    value: int
    structure_at: int
    names_at: int


def read(connection: Connection) -> Position:
    """Return how far the sequence is; one statement."""
    row = connection.execute(_READ).one()
    return Position(*row)


def usage_changed(connection: Connection) -> None:
    """Take the next value: only `used` of inventories changes. Locks the sequence until commit."""
    connection.execute(_USAGE)


def structure_changed(connection: Connection) -> None:
    """Take the next value: providers, inventories, traits or aggregates change."""
    connection.execute(_STRUCTURE)


def names_changed(connection: Connection) -> None:
    """Take the next value: the list of traits or of resource classes changes."""
    connection.execute(_NAMES)


def seconds() -> int:
    """The current time as the tables keep it."""
    return int(time.time())
