"""Counts for monitoring, without projects and names of servers."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common.resources.states import OPEN_STATES
from db import schema
from db.reads.hosts import node_health
from db.reads.ledger.operations import state_now

_S, _O, _F, _A = schema.servers.c, schema.operations.c, schema.findings.c, schema.audits.c
_V, _D = schema.vmids.c, schema.services.c


@dataclass(frozen=True, slots=True)
class Metrics:
    """Counts; a key is the labels' values."""

    servers: Mapping[str, int]
    """By vm_state; deleted ones are left out."""
    held_servers: int
    record_held_at: datetime.datetime | None
    """Since when everything that destroys is held; None: it isn't."""
    operations: Mapping[str, int]
    """Open ones by state; without a lease they are queued."""
    oldest_operation_at: datetime.datetime | None
    findings: Mapping[tuple[str, str], int]
    """Open ones by (kind, severity)."""
    vmids: Mapping[tuple[str, str], int]
    """By (cluster, state)."""
    services: Mapping[tuple[str, bool], int]
    """By (binary, whether it is up)."""
    audit_started_at: datetime.datetime | None
    """Of the last audit that succeeded."""
    audit_finished_at: datetime.datetime | None


def read(connection: sa.Connection, up_since: datetime.datetime) -> Metrics:
    """Count, in 8 statements; services that reported since then and reach their node are up."""
    audit = connection.execute(
        sa.select(_A.started_at, _A.finished_at)
        .where(_A.state == "done")
        .order_by(_A.id.desc())
        .limit(1)
    ).first()
    alive = _S.deleted_at.is_(None)
    held_at = sa.select(schema.cloud_identity.c.held_at).scalar_subquery()
    held = connection.execute(
        sa.select(sa.func.count(), held_at).select_from(schema.servers).where(alive, _S.held)
    ).one()
    up = node_health.is_up(up_since).label("up")
    open_ones = _O.state.in_(OPEN_STATES)
    return Metrics(
        servers=_by(connection, (_S.vm_state,), alive),
        held_servers=held[0],
        record_held_at=held[1],
        operations=_by(connection, (state_now().label("state_now"),), open_ones),
        oldest_operation_at=connection.execute(
            sa.select(sa.func.min(_O.started_at)).where(open_ones)
        ).scalar_one(),
        findings=_by(connection, (_F.kind, _F.severity), _F.healed_at.is_(None)),
        vmids=_by(connection, (_V.cluster, _V.state), sa.true()),
        services=_by(connection, (_D.binary, up), sa.true(), node_health.SERVICES),
        audit_started_at=audit.started_at if audit else None,
        audit_finished_at=audit.finished_at if audit else None,
    )


def _by(
    connection: sa.Connection,
    columns: tuple[Any, ...],
    which: sa.ColumnElement[bool],
    source: sa.FromClause | None = None,
) -> dict[Any, int]:
    query = sa.select(*columns, sa.func.count()).where(which).group_by(*columns)
    rows = connection.execute(query if source is None else query.select_from(source))
    return {key[0] if len(key) == 1 else tuple(key): count for *key, count in rows}
