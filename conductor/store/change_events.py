"""Notes of what a transaction does to servers and operations, for its notifications.

The store's functions write them where it happens. Nothing is noted without a recorder; see
``Store``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import sqlalchemy as sa

if TYPE_CHECKING:
    from common.context import RequestContext
    from conductor.store.records import Operation, Server

_NOTED = "micronova.notices"


@dataclass(frozen=True)
class Begun:
    """An operation that was written."""

    operation: Operation


@dataclass(frozen=True)
class Ended:
    """An operation that was closed."""

    operation_id: int
    action: str
    resource_type: str
    resource_id: str
    state: str
    message: str | None = None


@dataclass(frozen=True)
class Made:
    """A server that was written for the first time."""

    server: Server
    columns: Mapping[str, Any]


@dataclass(frozen=True)
class Moved:
    """A server's transition."""

    before: Server
    operation_id: int
    columns: Mapping[str, Any]
    """What it sets."""


@dataclass(frozen=True)
class Changed:
    """A change of a server that is no transition."""

    before: Server
    columns: Mapping[str, Any]
    ctxt: RequestContext | None


@dataclass(frozen=True)
class Announced:
    """A notification of something other than a server, with its whole payload."""

    event: str
    kind: str
    """Nova's name of the payload."""
    data: Mapping[str, Any]
    ctxt: RequestContext | None


@dataclass(frozen=True)
class Asked:
    """A request about a server's running operation, and whether it was carried out."""

    server: Server
    part: str
    """Of the event's name: ``live_migration_abort``."""
    phase: str
    """``start`` or ``end``."""
    ctxt: RequestContext


Notice: TypeAlias = Begun | Ended | Made | Moved | Changed | Announced | Asked


class Recorder(Protocol):
    """Writes what is to be sent, as the last part of a transaction."""

    def write(self, connection: sa.Connection, noted: Sequence[Notice]) -> None:
        """Write it. An error of the database gives the transaction up, and it is run again."""
        ...

    def lost(self, error: Exception) -> None:
        """Note that what was to be sent could not be written."""
        ...


def watch(connection: sa.Connection, on: bool) -> None:
    """Note what this transaction does from now on, or don't."""
    if on:
        connection.info[_NOTED] = []
    else:
        connection.info.pop(_NOTED, None)


def watched(connection: sa.Connection) -> bool:
    """Return whether what this transaction does is noted."""
    return _NOTED in connection.info


def noted(connection: sa.Connection) -> Sequence[Notice]:
    """Return what the transaction has done so far."""
    found: list[Notice] = connection.info.get(_NOTED) or []
    return found


def note(connection: sa.Connection, what: Iterable[Notice]) -> None:
    """Note it, if there is a recorder."""
    kept: list[Notice] | None = connection.info.get(_NOTED)
    if kept is not None:
        kept.extend(what)
