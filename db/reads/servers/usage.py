"""What servers used in a window of time, deleted ones included."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from db import schema
from db.reads import keyset
from db.records import columns

_T = schema.servers.c


@dataclass(frozen=True, slots=True)
class UsedServer:
    """A server that ran at some time; sizes in MiB and GiB."""

    uuid: str
    project_id: str
    name: str
    vm_state: str
    flavor: Mapping[str, Any]
    launched_at: datetime.datetime
    terminated_at: datetime.datetime | None


_COLUMNS = columns(schema.servers, UsedServer)


def in_window(
    connection: sa.Connection,
    begin: datetime.datetime,
    end: datetime.datetime,
    project_id: str | None,
    *,
    limit: int,
    marker: str | None = None,
) -> list[UsedServer]:
    """Return a page of the servers that were there between two times, by project and UUID.

    `project_id`: only that project's. Raises keyset.MarkerNotFound.
    """
    if limit == 0:
        return []
    visible = [] if project_id is None else [_T.project_id == project_id]
    statement = sa.select(*_COLUMNS).where(
        _T.launched_at < sa.literal(end, _T.launched_at.type),
        _T.terminated_at.is_(None) | (_T.terminated_at > sa.literal(begin, _T.launched_at.type)),
    )
    order = [keyset.Sort(_T.project_id), keyset.Sort(_T.uuid)]
    page = keyset.Page(limit, marker)
    rows: Sequence[Any] = keyset.read(connection, statement, order, page, _T.uuid, visible=visible)
    return [UsedServer(*row) for row in rows]
