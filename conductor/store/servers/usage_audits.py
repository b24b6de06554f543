"""The progress of usage audits, and the servers that existed in their periods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from common import clock
from common.resources.audit_periods import Window
from common.resources.states import VmState
from db.reads.servers.usage_audits import UsageAudit, find, of
from db.schema import servers, usage_audits

__all__ = ["UsageAudit", "Used", "advance", "begin", "find", "page"]

#: periods that are kept
KEPT = 100


@dataclass(frozen=True)
class Used:
    """A server that existed in a period."""

    id: int
    uuid: str
    host: str


def begin(connection: sa.Connection, window: Window, unit: str) -> list[Window]:
    """Record that a period's audit begins; return the periods whose audits were not finished.

    These are given up, and only the latest finished ones are retained.
    """
    _delete_old(connection)
    unfinished = usage_audits.c.finished_at.is_(None)
    columns = usage_audits.c.period_beginning, usage_audits.c.period_ending
    rows = connection.execute(sa.select(*columns).where(unfinished)).all()
    connection.execute(usage_audits.delete().where(unfinished))
    connection.execute(
        usage_audits.insert().values(
            period_beginning=window[0],
            period_ending=window[1],
            unit=unit,
            last_server_id=0,
            servers_by_host={},
        )
    )
    return [(row.period_beginning, row.period_ending) for row in rows]


def _delete_old(connection: sa.Connection) -> None:
    ended = usage_audits.c.period_ending
    oldest = connection.execute(
        sa.select(ended).order_by(ended.desc()).offset(KEPT - 1).limit(1)
    ).scalar()
    if oldest is not None:
        connection.execute(usage_audits.delete().where(ended <= oldest))


def page(connection: sa.Connection, window: Window, after: int, limit: int) -> list[Used]:
    """Return the next servers of a period by their ids, deleted ones included.

    As in Nova, which audits each host, servers that never were on a host, or were shelved off it,
    are left out.
    """
    begin, end = window
    query = (
        sa.select(servers.c.id, servers.c.uuid, servers.c.host)
        .where(
            servers.c.id > after,
            servers.c.launched_at < end,
            servers.c.terminated_at.is_(None) | (servers.c.terminated_at > begin),
            servers.c.host.is_not(None),
            servers.c.vm_state != VmState.SHELVED_OFFLOADED,
        )
        .order_by(servers.c.id)
        .limit(limit)
    )
    return [Used(**row._mapping) for row in connection.execute(query)]


def advance(
    connection: sa.Connection,
    window: Window,
    known: UsageAudit,
    last_server_id: int,
    servers_by_host: Mapping[str, int],
    *,
    finished: bool,
) -> bool:
    """Store how far an audit is; return False if another conductor has advanced it."""
    as_known = (
        usage_audits.c.finished_at.is_(None),
        usage_audits.c.last_server_id == known.last_server_id,
    )
    values = {
        "last_server_id": last_server_id,
        "servers_by_host": dict(servers_by_host),
        "finished_at": clock.utcnow() if finished else None,
    }
    done = connection.execute(usage_audits.update().where(of(window), *as_known).values(**values))
    return done.rowcount == 1
