"""Allocations and their sums, read-only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db import schema

_A, _N, _P, _I = (
    schema.allocations.c,
    schema.consumers.c,
    schema.providers.c,
    schema.inventories.c,
)
_HELD = schema.allocations.join(schema.consumers, _N.uuid == _A.consumer_uuid)
_OF_CONSUMER = (
    sa.select(
        _P.uuid,
        _P.generation,
        _A.resource_class,
        _A.used,
        _A.created_at,
        _N.project_id,
        _N.user_id,
        _N.generation.label("consumer_generation"),
        _N.consumer_type,
    )
    .select_from(_HELD.join(schema.providers, _P.id == _A.provider_id))
    .where(_A.consumer_uuid == sa.bindparam("consumer"))
    .order_by(_P.id, _A.resource_class)
)
_OF_PROVIDER = (
    sa.select(
        _A.consumer_uuid,
        _N.generation.label("consumer_generation"),
        _A.resource_class,
        _A.used,
        _A.created_at,
    )
    .select_from(_HELD)
    .where(_A.provider_id == sa.bindparam("provider"))
    .order_by(_N.id, _A.resource_class)
)
_PAGE = (
    sa.select(_A.consumer_uuid)
    .where(_A.consumer_uuid > sa.bindparam("marker"))
    .distinct()
    .order_by(_A.consumer_uuid)
    .limit(sa.bindparam("most"))
    .subquery()
)
_OF_CONSUMERS = (
    sa.select(_A.consumer_uuid, _P.uuid, _A.resource_class, _A.used)
    .select_from(
        schema.allocations.join(_PAGE, _PAGE.c.consumer_uuid == _A.consumer_uuid).join(
            schema.providers, _P.id == _A.provider_id
        )
    )
    .order_by(_A.consumer_uuid, _P.id, _A.resource_class)
)
_USED = (
    sa.select(_I.resource_class, _I.used)
    .where(_I.provider_id == sa.bindparam("provider"))
    .order_by(_I.resource_class)
)


class TypeUsage(NamedTuple):
    """What consumers of one type (None: unknown) have of one resource class in all."""

    consumer_type: str | None
    resource_class: str
    used: int


def of_consumer(connection: Connection, uuid: str) -> Sequence[Any]:
    """Return a consumer's allocations; one statement."""
    return connection.execute(_OF_CONSUMER, {"consumer": uuid}).all()


def of_provider(connection: Connection, provider_id: int) -> Sequence[Any]:
    """Return the allocations against a provider."""
    return connection.execute(_OF_PROVIDER, {"provider": provider_id}).all()


def of_consumers(connection: Connection, marker: str, most: int) -> Sequence[Any]:
    """Return the allocations of the first consumers after `marker`, ordered by UUID.

    Rows are (consumer UUID, provider UUID, resource class, amount).
    """
    return connection.execute(_OF_CONSUMERS, {"marker": marker, "most": most}).all()


def used(connection: Connection, provider_id: int) -> dict[str, int]:
    """Return how much of each inventory of a provider is allocated."""
    return {row[0]: row[1] for row in connection.execute(_USED, {"provider": provider_id})}


def by_type(
    connection: Connection, project_id: str, user_id: str | None
) -> tuple[list[TypeUsage], dict[str | None, int]]:
    """Return the usage of a project (or one user in it), by consumer type and resource class.

    Also returns how many consumers there are of each type.
    """
    mine = _N.project_id == project_id
    if user_id is not None:
        mine = sa.and_(mine, _N.user_id == user_id)
    sums = (
        sa.select(_N.consumer_type, _A.resource_class, sa.func.sum(_A.used))
        .select_from(_HELD)
        .where(mine)
        .group_by(_N.consumer_type, _A.resource_class)
        .order_by(_N.consumer_type, _A.resource_class)
    )
    counts = (
        sa.select(_N.consumer_type, sa.func.count(sa.distinct(_A.consumer_uuid)))
        .select_from(_HELD)
        .where(mine)
        .group_by(_N.consumer_type)
    )
    usages = [TypeUsage(row[0], row[1], int(row[2])) for row in connection.execute(sums)]
    return usages, {row[0]: row[1] for row in connection.execute(counts)}
