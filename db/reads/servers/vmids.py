"""VMIDs that are not free: their owners, or why they aren't used."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import sqlalchemy as sa

from db import schema

_V, _T = schema.vmids.c, schema.templates.c


@dataclass(frozen=True, slots=True)
class Vmid:
    """One VMID of a cluster's band."""

    cluster: str
    vmid: int
    state: str
    """``reserved``, ``quarantined``, or ``taken``: seen in use by others."""
    server_uuid: str | None
    image_id: str | None
    """The image whose template it is."""
    reason: str | None
    since: datetime.datetime


def list_vmids(
    connection: sa.Connection,
    limit: int,
    *,
    state: str | None = None,
    cluster: str | None = None,
    vmid: int | None = None,
) -> list[Vmid]:
    """Return VMIDs: those in doubt first, then by cluster and number."""
    template = (_T.cluster == _V.cluster) & (_T.vmid == _V.vmid)
    statement = (
        sa.select(_V.cluster, _V.vmid, _V.state, _V.server_uuid, _T.image_id, _V.reason, _V.since)
        .select_from(schema.vmids.outerjoin(schema.templates, template))
        .order_by(_V.state, _V.cluster, _V.vmid)
        .limit(limit)
    )
    if state is not None:
        statement = statement.where(_V.state == state)
    if cluster is not None:
        statement = statement.where(_V.cluster == cluster)
    if vmid is not None:
        statement = statement.where(_V.vmid == vmid)
    return [Vmid(*row) for row in connection.execute(statement)]
