"""Refused requests without an operation: the newest of each project, for some time."""

from __future__ import annotations

import datetime

import sqlalchemy as sa

from common.context import RequestContext
from conductor.rpc.refusals import Refused
from db.schema import refusals

_LONGEST = {"method": 16, "path": 255, "message": 1000}


def keep(connection: sa.Connection, ctxt: RequestContext, refused: Refused, newest: int) -> None:
    """Store one; delete all but the ``newest`` of its project. Two statements, or three."""
    texts = {
        name: str(getattr(refused, name)).replace("\0", "")[:most]
        for name, most in _LONGEST.items()
    }
    connection.execute(
        refusals.insert(),
        {
            "project_id": ctxt.project_id,
            "user_id": ctxt.user_id,
            "request_id": ctxt.request_id,
            "global_request_id": ctxt.global_request_id,
            "status": refused.status,
            "details": dict(refused.details),
            "of_admin": bool(ctxt.is_admin),
            "received_at": refused.received_at,
            "answered_at": refused.answered_at,
            **texts,
        },
    )
    mine = refusals.c.project_id == ctxt.project_id
    crowded_out = connection.execute(
        sa.select(refusals.c.id).where(mine).order_by(refusals.c.id.desc()).offset(newest).limit(1)
    ).scalar()
    if crowded_out is not None:
        connection.execute(refusals.delete().where(mine, refusals.c.id <= crowded_out))


def delete_old(connection: sa.Connection, before: datetime.datetime, batch: int) -> int:
    """Delete at most ``batch`` that were answered ``before``; return how many."""
    old = (
        sa.select(refusals.c.id)
        .where(refusals.c.answered_at < before)
        .order_by(refusals.c.answered_at)
        .limit(batch)
    )
    ids = connection.execute(old).scalars().all()
    if ids:
        connection.execute(refusals.delete().where(refusals.c.id.in_(ids)))
    return len(ids)
