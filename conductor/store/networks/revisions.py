"""Revisions of what the Network API has: one more with each change, and changes of one alone."""

from __future__ import annotations

import functools
from typing import Any

import sqlalchemy as sa

from common import clock
from common.context import RequestContext
from common.errors import PreconditionFailed
from db import schema


def changed(table: sa.Table) -> dict[str, Any]:
    """Return the values of a record that changes, besides what changes."""
    return {"revision": table.c.revision + 1, "updated_at": clock.utcnow()}


def bump(connection: sa.Connection, table: sa.Table, record_id: str) -> None:
    """Have a record changed whose parts did."""
    mine = table.c.id == record_id
    connection.execute(table.update().where(mine).values(**changed(table)))


def _require(
    connection: sa.Connection, ctxt: RequestContext, record_id: str, *, table: sa.Table
) -> None:
    """Raise PreconditionFailed unless a record has the revision that the request is for.

    The record is locked until the transaction ends. The caller checks whether it exists.
    """
    wanted = ctxt.if_revision
    if wanted is None:
        return
    mine = sa.select(table.c.revision).where(table.c.id == record_id).with_for_update()
    found = connection.execute(mine).scalar()
    if found is not None and found != wanted:
        raise PreconditionFailed(
            f"Constrained to {wanted}, but current revision is {found}",
            type="RevisionNumberConstraintFailed",
        )


require_network = functools.partial(_require, table=schema.networks)
require_subnet = functools.partial(_require, table=schema.subnets)
require_port = functools.partial(_require, table=schema.ports)
require_address_group = functools.partial(_require, table=schema.address_groups)
require_group = functools.partial(_require, table=schema.security_groups)
