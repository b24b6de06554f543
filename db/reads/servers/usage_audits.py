"""Up to which server the usage of audit periods was reported."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from common.resources.audit_periods import Window
from db.records import columns
from db.schema import usage_audits

_T = usage_audits.c


@dataclass(frozen=True, slots=True)
class UsageAudit:
    """The progress of one period's audit."""

    last_server_id: int
    """The last server that was reported."""
    servers_by_host: Mapping[str, int]
    """{host: number of reported servers}"""
    finished_at: datetime.datetime | None


_COLUMNS = columns(usage_audits, UsageAudit)


def of(window: Window) -> sa.ColumnElement[bool]:
    """Return the condition of a period's row."""
    begin, end = window
    return (_T.period_beginning == begin) & (_T.period_ending == end)


def find(connection: sa.Connection, window: Window) -> UsageAudit | None:
    """Return the audit of a period; None: nothing was reported of it."""
    row = connection.execute(sa.select(*_COLUMNS).where(of(window))).first()
    return None if row is None else UsageAudit(*row)


def unit(connection: sa.Connection) -> str | None:
    """Return the unit of the last reported period, such as ``month@15``."""
    query = sa.select(_T.unit).order_by(_T.period_ending.desc(), _T.period_beginning).limit(1)
    found: str | None = connection.execute(query).scalar()
    return found
