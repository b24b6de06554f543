"""What is done in the whole cloud: the operations of all projects, with who asked for them."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common.resources.states import OPEN_STATES
from db import resources, schema
from db.reads import keyset
from db.reads.ledger.operations import state_now
from db.records import columns

_T = schema.operations.c

#: asks for all operations that haven't ended
OPEN = "open"


@dataclass(frozen=True, slots=True)
class Entry:
    """One operation, and who asked for it."""

    id: int
    request_id: str
    global_request_id: str | None
    action: str
    state: str
    resource_type: str
    resource_id: str
    resource_name: str | None
    """None: it has none that is known, or is gone."""
    project_id: str
    project_name: str | None
    """As the token said."""
    user_id: str
    user_name: str | None
    remote_address: str | None
    """From where the request came; None: the cloud did it by itself, or it wasn't recorded."""
    attempt: int
    message: str | None
    not_before: datetime.datetime | None
    """Until when it is not tried again."""
    started_at: datetime.datetime
    updated_at: datetime.datetime
    finished_at: datetime.datetime | None


@dataclass(frozen=True)
class Wanted:
    """Which operations; None: any."""

    project_id: str | None = None
    user_id: str | None = None
    state: str | None = None
    """`OPEN`, or one of `common.resources.states.OperationState`."""
    oldest_first: bool = False


def page(
    connection: sa.Connection, wanted: Wanted, limit: int, after: int | None = None
) -> list[Entry]:
    """Return a page of operations, those that come after an ID. One query."""
    by = keyset.Sort(_T.id, descending=not wanted.oldest_first)
    made: dict[str, sa.ColumnElement[Any]] = {
        name: _T.context[name].as_string()
        for name in ("project_name", "user_name", "remote_address")
    }
    made |= {"state": state_now(), "resource_name": resources.its_name()}
    query: sa.Select[Any] = (
        sa.select(*columns(schema.operations, Entry, **made))
        .select_from(schema.operations.outerjoin(schema.servers, resources.ITS_SERVER))
        .order_by(by.expression.desc() if by.descending else by.expression)
        .limit(limit)
    )
    for column, value in ((_T.project_id, wanted.project_id), (_T.user_id, wanted.user_id)):
        if value is not None:
            query = query.where(column == value)
    if wanted.state == OPEN:
        query = query.where(_T.state.in_(OPEN_STATES))
    elif wanted.state is not None:
        query = query.where(state_now() == wanted.state)
    if after is not None:
        query = query.where(keyset.after([by], [after]))
    return [Entry(*row) for row in connection.execute(query)]
