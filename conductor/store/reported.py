"""The operations that reports of agents name."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from conductor.store import operations as ledger
from conductor.store.operations import Operation
from db.resources import SERVER_UUID
from db.schema import operations, servers

# Built once: every batch of reports executes it.
_KNOWN = (
    sa.select(*ledger.FIELDS, servers.c.host.label("server_host"))
    .select_from(operations.outerjoin(servers, servers.c.uuid == SERVER_UUID))
    .where(operations.c.id.in_(sa.bindparam("ids", expanding=True)))
)


def operations_of(
    connection: sa.Connection, ids: Collection[int]
) -> dict[int, tuple[Operation, str | None]]:
    """Return operations with the host of their server, by one query."""
    rows = connection.execute(_KNOWN, {"ids": sorted(ids)})
    return {row.id: (ledger.from_row(row._mapping), row.server_host) for row in rows}
