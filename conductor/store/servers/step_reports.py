"""The operations that reports of agents name."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation, Server
from conductor.store.servers import servers as store
from db.resources import ITS_SERVER
from db.schema import agent_leases, operations, servers

# Built once: every batch of reports executes it.
_IS_CURRENT = sa.exists().where(agent_leases.c.worker == sa.bindparam("worker"))
_KNOWN: sa.Select[Any] = (
    sa.select(*ledger.FIELDS, *store.BESIDE, _IS_CURRENT.label("is_current"))
    .select_from(operations.outerjoin(servers, ITS_SERVER))
    .where(operations.c.id.in_(sa.bindparam("ids", expanding=True)))
)


def operations_of(
    connection: sa.Connection, ids: Collection[int], worker: str
) -> tuple[dict[int, tuple[Operation, Server | None]], bool]:
    """Return operations with the server that each is about, and whether a worker, by its address,
    carries agents in the tenure that it names. One query.

    Those that this release can't read are not among them.
    """
    rows = connection.execute(_KNOWN, {"ids": sorted(ids), "worker": worker}).all()
    found = {one.id: one for one in ledger.readable(rows)[0]}
    its = {row.id: (found[row.id], store.beside(row._mapping)) for row in rows if row.id in found}
    return its, any(row.is_current for row in rows)
