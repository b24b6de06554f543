"""Removing resource providers, and how long removals are remembered."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from common.errors import NotFound
from placement.db import providers, schema, sequence
from placement.errors import ProviderHasChildren, ProviderInUse

_P = schema.providers.c
_DEPENDENTS = (schema.inventories, schema.provider_aggregates, schema.provider_traits)
#: a snapshot that is further behind is rebuilt
KEPT, PRUNE_EVERY = 10_000, 64


def remove(
    connection: Connection, uuid: str, *, kept: int = KEPT, prune_every: int = PRUNE_EVERY
) -> None:
    """Delete a provider with its inventories, traits and aggregates.

    So many removals are remembered for snapshots that follow; older ones are forgotten now and
    then, at every so many-th ID. Raises NotFound, ProviderHasChildren, ProviderInUse (it has
    allocations).
    """
    try:
        provider_id, _ = providers.lock(connection, uuid)
    except NotFound as error:
        raise NotFound(f"No resource provider with uuid {uuid} found for delete") from error
    children = sa.select(_P.id).where(_P.parent_id == provider_id).limit(1)
    if connection.execute(children).first():
        raise ProviderHasChildren(
            f"Unable to delete parent resource provider {uuid}: It has child resource providers."
        )
    users = sa.select(schema.allocations.c.used).where(
        schema.allocations.c.provider_id == provider_id
    )
    if connection.execute(users.limit(1)).first():
        raise ProviderInUse(
            f"Unable to delete resource provider {uuid}: Resource provider has allocations."
        )
    for table in _DEPENDENTS:
        connection.execute(sa.delete(table).where(table.c.provider_id == provider_id))
    connection.execute(
        sa.update(schema.providers).where(_P.id == provider_id).values(root_id=None)
    )
    connection.execute(sa.delete(schema.providers).where(_P.id == provider_id))
    sequence.advance(connection)
    connection.execute(
        sa.insert(schema.removed_providers).values(provider_id=provider_id, changed=sequence.NOW)
    )
    if provider_id % prune_every == 0:
        _forget_old(connection, kept)


def _forget_old(connection: Connection, kept: int) -> None:
    """Keep the latest removals; a snapshot that is further behind is rebuilt."""
    c = schema.removed_providers.c
    oldest = connection.scalar(
        sa.select(c.changed).order_by(c.changed.desc()).offset(kept).limit(1)
    )
    if oldest is not None:
        connection.execute(sa.delete(schema.removed_providers).where(c.changed <= oldest))
        sequence.pruned(connection, oldest)
