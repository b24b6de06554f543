"""Steps of operations as rows."""

from __future__ import annotations

import functools
from typing import Any

import sqlalchemy as sa

from common.messages.reports import Step
from db.schema import operation_events


def row(operation_id: int, attempt: int, host: str | None, step: Step) -> dict[str, Any]:
    """Return the row of a step."""
    return {
        "operation_id": operation_id,
        "attempt": attempt,
        "name": step.name,
        "sequence": step.sequence,
        "host": host,
        "started_at": step.started_at,
        "finished_at": step.finished_at,
        "result": step.result,
        "upid": step.upid,
        "detail": dict(step.detail),
    }


_KEY = ("operation_id", "attempt", "name")


def upsert(connection: sa.Connection, rows: list[dict[str, Any]]) -> None:
    """Insert or replace rows of ``operation_events``: one statement.

    Reports may overtake each other on the bus: a finished row remains finished.
    """
    latest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in _KEY)
        if key not in latest or row["finished_at"] or not latest[key]["finished_at"]:
            latest[key] = row
    if latest:
        connection.execute(_statement(connection.dialect.name), list(latest.values()))


@functools.cache
def _statement(dialect: str) -> Any:
    table = operation_events
    changing = [c.name for c in table.c if c.name not in _KEY]
    if dialect in {"mysql", "mariadb"}:
        from sqlalchemy.dialects.mysql import insert as mysql_insert

        new = mysql_insert(table)
        keep = table.c.finished_at.is_not(None) & new.inserted.finished_at.is_(None)
        return new.on_duplicate_key_update(
            {name: sa.case((keep, table.c[name]), else_=new.inserted[name]) for name in changing}
        )
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as conflict_insert
    else:
        from sqlalchemy.dialects.sqlite import insert as conflict_insert  # type: ignore[assignment]
    inserted = conflict_insert(table)
    return inserted.on_conflict_do_update(
        index_elements=list(_KEY),
        set_={name: inserted.excluded[name] for name in changing},
        where=table.c.finished_at.is_(None) | inserted.excluded.finished_at.is_not(None),
    )
