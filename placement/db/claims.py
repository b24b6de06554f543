"""The statements of claims, written once: see placement.ledger for what they are for."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from placement.db import schema, sequence

_P, _I, _A, _N = (
    schema.providers.c,
    schema.inventories.c,
    schema.allocations.c,
    schema.consumers.c,
)
_CONSUMERS: sa.BindParameter[Any] = sa.bindparam("consumers", expanding=True)
_UUIDS: sa.BindParameter[Any] = sa.bindparam("providers", expanding=True)
LOCK_CONSUMERS = (
    sa.select(_N.uuid, _N.generation)
    .where(_N.uuid.in_(_CONSUMERS))
    .order_by(_N.uuid)
    .with_for_update()
)


def _locking(freed: Any, source: Any, where: Any) -> sa.Select[Any]:
    """Inventories with their providers, both locked, in one order.

    Both tables are locked, not only the providers: after a wait PostgreSQL reads locked rows
    again, and joined rows that aren't locked as they were before the wait.
    """
    return (
        sa.select(_P.id, _P.uuid, _I.resource_class, freed, *schema.STOCK)
        .select_from(source)
        .where(where)
        .order_by(_P.id, _I.resource_class)
        .with_for_update(of=[schema.providers, schema.inventories])
    )


_STOCKS = schema.providers.join(schema.inventories, _I.provider_id == _P.id)
_OF_CONSUMERS = sa.and_(
    _A.provider_id == _I.provider_id,
    _A.resource_class == _I.resource_class,
    _A.consumer_uuid.in_(_CONSUMERS),
)
LOCK_STOCKS = _locking(sa.literal(0), _STOCKS, _P.uuid.in_(_UUIDS))
LOCK_BOTH = _locking(
    _A.used,
    _STOCKS.outerjoin(schema.allocations, _OF_CONSUMERS),
    sa.or_(
        _P.uuid.in_(_UUIDS),
        _P.id.in_(sa.select(_A.provider_id).where(_A.consumer_uuid.in_(_CONSUMERS))),
    ),
)
LOCK_HELD = _locking(_A.used, _STOCKS.join(schema.allocations, _OF_CONSUMERS), sa.true())
PROVIDER_IDS = sa.select(_P.id).where(_P.uuid.in_(_UUIDS))
HELD_IDS = sa.select(_A.provider_id).where(_A.consumer_uuid.in_(_CONSUMERS))
LOCK_PROVIDER = (
    sa.select(_P.id).where(_P.id == sa.bindparam("provider", type_=sa.Integer)).with_for_update()
)
DELETE_CONSUMERS = sa.delete(schema.consumers).where(_N.uuid.in_(_CONSUMERS))
DELETE_ALLOCATIONS = sa.delete(schema.allocations).where(_A.consumer_uuid.in_(_CONSUMERS))
UPDATE_CONSUMER = (
    sa.update(schema.consumers)
    .where(_N.uuid == sa.bindparam("of"))
    .values(
        generation=_N.generation + 1,
        project_id=sa.bindparam("project"),
        user_id=sa.bindparam("user"),
        consumer_type=sa.func.coalesce(sa.bindparam("type", type_=sa.String), _N.consumer_type),
    )
)
INSERT_CONSUMER = sa.insert(schema.consumers).values(
    uuid=sa.bindparam("of"),
    generation=1,
    project_id=sa.bindparam("project"),
    user_id=sa.bindparam("user"),
    consumer_type=sa.bindparam("type", type_=sa.String),
    created_at=sa.bindparam("now"),
)
INSERT_ALLOCATION = sa.insert(schema.allocations)
CHANGE_USED = (
    sa.update(schema.inventories)
    .where(_I.provider_id == sa.bindparam("provider"), _I.resource_class == sa.bindparam("name"))
    .values(used=_I.used + sa.bindparam("more"), changed=sequence.NOW)
)
BUMP_PROVIDERS = (
    sa.update(schema.providers)
    .where(_P.id.in_(sa.bindparam("ids", expanding=True)))
    .values(generation=_P.generation + 1, updated_at=sa.bindparam("now"))
)
