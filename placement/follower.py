"""Keeps a snapshot up to date with the database: what changed since N, and nothing else."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db import schema, sequence
from placement.db.engine import Database
from placement.snapshot import Provider, Snapshot, Stock

_P = schema.providers.c
_I = schema.inventories.c
_STOCK = (
    _I.total,
    _I.reserved,
    _I.min_unit,
    _I.max_unit,
    _I.step_size,
    _I.allocation_ratio,
    _I.used,
)
_SINCE: sa.BindParameter[int] = sa.bindparam("since", type_=sa.BigInteger)
_CHANGED_IDS = sa.select(_P.id).where(_P.changed > _SINCE)
_PROVIDERS = sa.select(_P.id, _P.uuid, _P.name, _P.parent_id, _P.root_id)
_STOCKS = sa.select(_I.provider_id, _I.resource_class, *_STOCK)
_TRAITS = sa.select(schema.provider_traits.c.provider_id, schema.provider_traits.c.trait)
_AGGREGATES = sa.select(
    schema.provider_aggregates.c.provider_id, schema.provider_aggregates.c.aggregate_uuid
)
_SINCE_PROVIDERS = _PROVIDERS.where(_P.changed > _SINCE)
_SINCE_STOCKS = _STOCKS.where(_I.provider_id.in_(_CHANGED_IDS))
_SINCE_TRAITS = _TRAITS.where(schema.provider_traits.c.provider_id.in_(_CHANGED_IDS))
_SINCE_AGGREGATES = _AGGREGATES.where(schema.provider_aggregates.c.provider_id.in_(_CHANGED_IDS))
_SINCE_USED = _STOCKS.where(_I.changed > _SINCE)
_SINCE_REMOVED = sa.select(schema.removed_providers.c.provider_id).where(
    schema.removed_providers.c.changed > _SINCE
)
_TRAIT_NAMES = sa.select(schema.traits.c.name)
_CLASS_NAMES = sa.select(schema.resource_classes.c.name)


class Follower:
    """The snapshot of one process; threads share it.

    `current()` costs one statement when nothing changed, two when only usages did.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None

    def current(self) -> Snapshot:
        """Return a snapshot that has all that was committed before the call.

        Raises Unavailable when the database doesn't answer.
        """
        position = self._database.read(sequence.read)
        snapshot = self._snapshot
        if snapshot is not None and snapshot.value == position.value:
            return snapshot
        with self._lock:
            snapshot = self._snapshot
            if snapshot is None or snapshot.value != position.value:
                snapshot = self._database.read(self._caught_up)
                self._snapshot = snapshot
            return snapshot

    def _caught_up(self, connection: Connection) -> Snapshot:
        """Return the snapshot as of now.

        The position is read first and recorded: rows that change while reading are stamped
        later than it and will be read again.
        """
        position = sequence.read(connection)
        snapshot = self._snapshot
        if snapshot is None or snapshot.value > position.value:
            # The second case is a database restored from a backup.
            return _loaded(connection, position)
        since = snapshot.value
        if position.names_at > since:
            snapshot = _with_names(connection, snapshot)
        if position.structure_at > since:
            snapshot = _restructured(connection, snapshot, since)
        rows = connection.execute(_SINCE_USED, {"since": since})
        return snapshot.used(position.value, {(row[0], row[1]): Stock(*row[2:]) for row in rows})


def _loaded(connection: Connection, position: sequence.Position) -> Snapshot:
    providers = _assembled(
        connection.execute(_PROVIDERS.order_by(_P.id)).all(),
        connection.execute(_STOCKS),
        connection.execute(_TRAITS),
        connection.execute(_AGGREGATES),
    )
    snapshot = Snapshot().changed(position.value, providers)
    return _with_names(connection, snapshot)


def _with_names(connection: Connection, snapshot: Snapshot) -> Snapshot:
    return snapshot.named(connection.scalars(_TRAIT_NAMES), connection.scalars(_CLASS_NAMES))


def _restructured(connection: Connection, snapshot: Snapshot, since: int) -> Snapshot:
    bound = {"since": since}
    removed = connection.scalars(_SINCE_REMOVED, bound).all()
    providers = _assembled(
        connection.execute(_SINCE_PROVIDERS, bound).all(),
        connection.execute(_SINCE_STOCKS, bound),
        connection.execute(_SINCE_TRAITS, bound),
        connection.execute(_SINCE_AGGREGATES, bound),
    )
    return snapshot.changed(since, providers, removed)


def _assembled(
    providers: Sequence[Any], stocks: Iterable[Any], traits: Iterable[Any], groups: Iterable[Any]
) -> list[Provider]:
    stocks_of: dict[int, dict[str, Stock]] = defaultdict(dict)
    for row in stocks:
        stocks_of[row[0]][row[1]] = Stock(*row[2:])
    traits_of: dict[int, list[str]] = defaultdict(list)
    for provider_id, trait in traits:
        traits_of[provider_id].append(trait)
    aggregates_of: dict[int, list[str]] = defaultdict(list)
    for provider_id, aggregate in groups:
        aggregates_of[provider_id].append(aggregate)
    return [
        Provider(
            id=row.id,
            uuid=row.uuid,
            name=row.name,
            parent_id=row.parent_id,
            root_id=row.root_id,
            stocks=stocks_of.get(row.id, {}),
            traits=frozenset(traits_of.get(row.id, ())),
            aggregates=frozenset(aggregates_of.get(row.id, ())),
        )
        for row in providers
    ]
