"""Updates a snapshot from the database by reading changes only."""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db import schema, sequence
from placement.db.engine import Database
from placement.db.sequence import Position
from placement.snapshot import Inventory, Provider, Snapshot

_P = schema.providers.c
_I = schema.inventories.c
_R = schema.removed_providers.c
_NOTHING = [sa.null()] * (1 + len(schema.STOCK))
_PROVIDERS = sa.select(_P.id, _P.uuid, _P.name, _P.parent_id, _P.root_id).order_by(_P.id)
_STOCKS = sa.select(_I.provider_id, _I.resource_class, *schema.STOCK)
_TRAITS = sa.select(schema.provider_traits.c.provider_id, schema.provider_traits.c.trait)
_AGGREGATES = sa.select(
    schema.provider_aggregates.c.provider_id, schema.provider_aggregates.c.aggregate_uuid
)
#: a provider was changed; was deleted; has only other usages
_NEW, _GONE, _USED = 0, 1, 2
#: all changes since a position, in one statement
_UNSEEN = sa.union_all(
    sa.select(sa.literal(_USED), _I.provider_id, _I.resource_class, *schema.STOCK).where(
        sequence.unseen(_I.changed)
    ),
    sa.select(sa.literal(_NEW), _P.id, *_NOTHING).where(sequence.unseen(_P.changed)),
    sa.select(sa.literal(_GONE), _R.provider_id, *_NOTHING).where(sequence.unseen(_R.changed)),
)
_IDS: sa.BindParameter[Any] = sa.bindparam("ids", expanding=True)
_PARTS = tuple(
    (query, query.where(column.in_(_IDS)))
    for query, column in (
        (_PROVIDERS, _P.id),
        (_STOCKS, _I.provider_id),
        (_TRAITS, schema.provider_traits.c.provider_id),
        (_AGGREGATES, schema.provider_aggregates.c.provider_id),
    )
)
_TRAIT_NAMES = sa.select(schema.traits.c.name)
_CLASS_NAMES = sa.select(schema.resource_classes.c.name)
#: with more changed providers, reading everything is cheaper
_ALL_AGAIN = 2_000


class _Seen(NamedTuple):
    position: Position
    snapshot: Snapshot


class Follower:
    """The snapshot of one process; threads share it.

    `current()` costs one statement when nothing changed, two when only usages did.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._seen: _Seen | None = None

    def current(self) -> Snapshot:
        """Return a snapshot that has all that was committed before the call.

        Raises Unavailable when the database doesn't answer.
        """
        before = self._seen
        position = self._database.read(sequence.read)
        if before is not None and before.position == position:
            return before.snapshot
        with self._lock:
            if self._seen is not before:
                # Another thread was faster; its snapshot may be new enough.
                position = self._database.read(sequence.read)
            seen = self._seen
            if seen is None or seen.position != position:
                seen = _Seen(
                    position, self._database.read(lambda c: _caught_up(c, seen, position))
                )
                self._seen = seen
            return seen.snapshot


def _caught_up(connection: Connection, seen: _Seen | None, position: Position) -> Snapshot:
    """Return the snapshot as of `position`, or later.

    The position was read first: rows that change while reading will be read again.
    """
    if seen is None or not position.follows(seen.position):
        # There is no snapshot yet, or changes are unknown: a restored database.
        return _with_names(connection, _everything(connection))
    snapshot = seen.snapshot
    if position.names_at != seen.position.names_at:
        snapshot = _with_names(connection, snapshot)
    fresh: set[int] = set()
    gone: list[int] = []
    used: dict[tuple[int, str], Inventory] = {}
    for kind, provider_id, name, *stock in connection.execute(
        _UNSEEN, sequence.bounds(seen.position)
    ):
        if kind == _USED:
            used[provider_id, name] = Inventory(*stock)
        elif kind == _GONE:
            gone.append(provider_id)
        else:
            fresh.add(provider_id)
    if len(fresh) > _ALL_AGAIN:
        return _everything(connection).named(snapshot.traits, snapshot.resource_classes)
    # Those read again are newer than their usages here.
    used = {key: stock for key, stock in used.items() if key[0] not in fresh}
    if fresh or gone:
        snapshot = snapshot.changed(_read(connection, sorted(fresh)) if fresh else (), gone)
    return snapshot.used(used) if used else snapshot


def _everything(connection: Connection) -> Snapshot:
    return Snapshot().changed(_read(connection, None))


def _with_names(connection: Connection, snapshot: Snapshot) -> Snapshot:
    return snapshot.named(connection.scalars(_TRAIT_NAMES), connection.scalars(_CLASS_NAMES))


def _read(connection: Connection, ids: Sequence[int] | None) -> list[Provider]:
    """Return providers with all that belongs to them; `ids` None: all. Four statements."""
    if ids is None:
        rows, *more = (connection.execute(query) for query, _ in _PARTS)
    else:
        rows, *more = (connection.execute(query, {"ids": ids}) for _, query in _PARTS)
    stocks_of: dict[int, dict[str, Inventory]] = defaultdict(dict)
    for provider_id, name, *stock in more[0]:
        stocks_of[provider_id][sys.intern(name)] = Inventory(*stock)
    traits_of, aggregates_of = _names_of(more[1]), _names_of(more[2])
    return [
        Provider(
            id=row.id,
            uuid=row.uuid,
            name=row.name,
            parent_id=row.parent_id,
            root_id=row.root_id,
            stocks=stocks_of.get(row.id, {}),
            traits=traits_of.get(row.id, _NONE),
            aggregates=aggregates_of.get(row.id, _NONE),
        )
        for row in rows
    ]


_NONE: frozenset[str] = frozenset()


def _names_of(rows: Iterable[Any]) -> Mapping[int, frozenset[str]]:
    """Return the names by provider; equal sets are one object, to save memory."""
    found: dict[int, list[str]] = defaultdict(list)
    for provider_id, name in rows:
        found[provider_id].append(sys.intern(name))
    same: dict[frozenset[str], frozenset[str]] = {}
    return {
        provider_id: same.setdefault(names, names)
        for provider_id, names in ((one, frozenset(some)) for one, some in found.items())
    }
