"""Refused requests, for `/explanations`."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from db import schema
from db.records import columns

_T = schema.refusals.c


#: key of the details: {user: name, project: name} of the caller, if the token had them
ASKED_BY = "asked_by"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that was answered with an error; `details` are the error's, and `ASKED_BY`."""

    project_id: str
    user_id: str
    request_id: str
    global_request_id: str | None
    method: str
    path: str
    status: int
    message: str
    details: Mapping[str, Any]
    received_at: datetime.datetime
    answered_at: datetime.datetime


_COLUMNS = columns(schema.refusals, Refusal)


def named(
    connection: sa.Connection, subject: str, project_id: str | None = None, *, limit: int
) -> list[Refusal]:
    """Return those with a request ID or a global request ID, the oldest first.

    Of more than `limit` the newest. `project_id`: only that project's, and no administrator's,
    whose errors may name hosts. One query, none for another subject.
    """
    if not subject.startswith("req-"):
        return []
    query = (
        sa.select(*_COLUMNS)
        .where((_T.request_id == subject) | (_T.global_request_id == subject))
        .order_by(_T.id.desc())
        .limit(limit)
    )
    if project_id is not None:
        query = query.where(_T.project_id == project_id, _T.of_admin.is_(False))
    return [Refusal(*row) for row in connection.execute(query)][::-1]
