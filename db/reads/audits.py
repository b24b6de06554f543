"""Audits and their findings."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from db import schema
from db.records import columns

_A, _F = schema.audits.c, schema.findings.c


@dataclass(frozen=True, slots=True)
class Audit:
    """One audit."""

    id: int
    request_id: str
    state: str
    conductor: str | None
    requested_at: datetime.datetime
    started_at: datetime.datetime | None
    finished_at: datetime.datetime | None
    report: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding."""

    id: int
    kind: str
    subject: str
    severity: str
    cause: str
    remedy: str | None
    heal: str | None
    server_uuid: str | None
    cluster: str | None
    node: str | None
    vmid: int | None
    evidence: Mapping[str, Any]
    first_seen_at: datetime.datetime
    last_seen_at: datetime.datetime
    healed_at: datetime.datetime | None
    healed_by: str | None
    heals: int
    tried_at: datetime.datetime | None
    operation_id: int | None
    answer: str | None


_AUDIT = columns(schema.audits, Audit)
_FINDING = columns(schema.findings, Finding)


def list_audits(connection: sa.Connection, limit: int) -> list[Audit]:
    """Return the last audits, newest first."""
    query = sa.select(*_AUDIT).order_by(_A.id.desc()).limit(limit)
    return [Audit(*row) for row in connection.execute(query)]


def find_audit(connection: sa.Connection, audit_id: int) -> Audit | None:
    """Return an audit, or None."""
    row = connection.execute(sa.select(*_AUDIT).where(_A.id == audit_id)).first()
    return None if row is None else Audit(*row)


def list_findings(
    connection: sa.Connection, limit: int, *, healed: bool = False, kind: str | None = None
) -> list[Finding]:
    """Return open findings, oldest first; or healed ones, the last one first."""
    query = sa.select(*_FINDING).limit(limit)
    if kind is not None:
        query = query.where(_F.kind == kind)
    if healed:
        query = query.where(_F.healed_at.is_not(None)).order_by(_F.healed_at.desc(), _F.id)
    else:
        query = query.where(_F.healed_at.is_(None)).order_by(_F.first_seen_at, _F.id)
    return [Finding(*row) for row in connection.execute(query)]


def find_finding(connection: sa.Connection, finding_id: int) -> Finding | None:
    """Return a finding, healed or not, or None."""
    row = connection.execute(sa.select(*_FINDING).where(_F.id == finding_id)).first()
    return None if row is None else Finding(*row)
