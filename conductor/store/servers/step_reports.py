"""The operations that reports of agents name."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation, Server
from conductor.store.servers import servers as store
from db.resources import ITS_SERVER
from db.schema import operations, servers

# Built once: every batch of reports executes it.
_KNOWN = (
    sa.select(*ledger.FIELDS, *store.BESIDE)
    .select_from(operations.outerjoin(servers, ITS_SERVER))
    .where(operations.c.id.in_(sa.bindparam("ids", expanding=True)))
)


def operations_of(
    connection: sa.Connection, ids: Collection[int]
) -> dict[int, tuple[Operation, Server | None]]:
    """Return operations with the server that each is about, by one query.

    Those that this release can't read are not among them.
    """
    rows = connection.execute(_KNOWN, {"ids": sorted(ids)}).all()
    found = {one.id: one for one in ledger.readable(rows)[0]}
    return {row.id: (found[row.id], store.beside(row._mapping)) for row in rows if row.id in found}
