"""Writes of audits and their findings."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import NotFound
from common.resources.states import OperationState
from db.records import columns
from db.schema import audits, findings, operations


class Task(enum.StrEnum):
    """What is run."""

    AUDIT = "audit"
    PLAN = "restore"  #: says what ``APPLY`` would do
    APPLY = "restore-apply"  #: decides about a restored record


QUEUED, RUNNING, DONE, FAILED = "queued", "running", "done", "failed"


# --- runs


def request(connection: sa.Connection, request_id: str, task: Task = Task.AUDIT) -> int:
    """Request an audit; return its id. If it has not begun, it serves both requests."""
    alike = (audits.c.state == QUEUED) & (audits.c.task == task)
    waiting: int | None = connection.execute(
        sa.select(audits.c.id).where(alike).order_by(audits.c.id).limit(1)
    ).scalar()
    if waiting is not None:
        return waiting
    key = connection.execute(
        audits.insert()
        .returning(audits.c.id)
        .values(
            request_id=request_id,
            task=task,
            state=QUEUED,
            requested_at=clock.utcnow(),
            report={},
        )
    ).scalar_one()
    return int(key)


def waiting(connection: sa.Connection) -> bool:
    """Return whether a requested audit has not begun."""
    query = sa.select(audits.c.id).where(audits.c.state == QUEUED).limit(1)
    return connection.execute(query).first() is not None


def unfinished(connection: sa.Connection) -> bool:
    """Return whether an audit waits, or runs: to the lease's owner, who runs none, one whose
    conductor died."""
    query = sa.select(audits.c.id).where(audits.c.state.in_((QUEUED, RUNNING))).limit(1)
    return connection.execute(query).first() is not None


def last_begun(connection: sa.Connection) -> datetime.datetime | None:
    """Return when the last audit began."""
    found: datetime.datetime | None = connection.execute(
        sa.select(audits.c.started_at)
        .where(audits.c.started_at.is_not(None))
        .order_by(audits.c.id.desc())
        .limit(1)
    ).scalar()
    return found


def begin(connection: sa.Connection, owner: str) -> tuple[int, Task]:
    """Begin what was requested first, or a periodic audit; end those whose conductor died.

    The caller holds the lease, so what is still ``running`` has lost its conductor.
    """
    now = clock.utcnow()
    dead = {"state": FAILED, "finished_at": now, "report": {"error": "Its conductor died."}}
    connection.execute(audits.update().where(audits.c.state == RUNNING).values(**dead))
    first = connection.execute(
        sa.select(audits.c.id, audits.c.task)
        .where(audits.c.state == QUEUED)
        .order_by(audits.c.id)
        .limit(1)
    ).first()
    key = request(connection, f"audit-by-{owner}"[:64]) if first is None else first.id
    connection.execute(
        audits.update()
        .where(audits.c.id == key)
        .values(state=RUNNING, conductor=owner, started_at=now)
    )
    return key, Task.AUDIT if first is None else Task(first.task)


def end(connection: sa.Connection, audit_id: int, state: str, report: Mapping[str, Any]) -> None:
    """Store how an audit ended."""
    connection.execute(
        audits.update()
        .where(audits.c.id == audit_id)
        .values(state=state, finished_at=clock.utcnow(), report=dict(report))
    )


def delete_old(connection: sa.Connection, days: float) -> None:
    """Delete audits that ended longer ago, and findings that were healed."""
    before = clock.after(-days * 86_400)
    connection.execute(audits.delete().where(audits.c.finished_at < before))
    connection.execute(findings.delete().where(findings.c.healed_at < before))


# --- findings


@dataclass(frozen=True)
class NewFinding:
    """A difference to be stored."""

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


@dataclass(frozen=True)
class Kept:
    """A row of ``findings``, as far as healing needs it."""

    id: int
    kind: str
    subject: str
    heal: str | None
    server_uuid: str | None
    cluster: str | None
    node: str | None
    vmid: int | None
    evidence: Mapping[str, Any]
    heals: int
    tried_at: datetime.datetime | None
    operation_id: int | None


_KEPT = columns(findings, Kept)


def keep(connection: sa.Connection, seen: Iterable[NewFinding]) -> list[Kept]:
    """Store what was seen: new findings, and known ones as seen again."""
    now = clock.utcnow()
    known = {(one.kind, one.subject): one.id for one in open_ones(connection)}
    for finding in seen:
        values = {**dataclasses.asdict(finding), "last_seen_at": now}
        key = known.get((finding.kind, finding.subject))
        if key is None:
            connection.execute(findings.insert().values(first_seen_at=now, heals=0, **values))
        else:
            connection.execute(findings.update().where(findings.c.id == key).values(**values))
    return open_ones(connection)


def open_ones(connection: sa.Connection) -> list[Kept]:
    """Return findings that were not seen healed."""
    query = sa.select(*_KEPT).where(findings.c.healed_at.is_(None)).order_by(findings.c.id)
    return [Kept(*row) for row in connection.execute(query)]


def doubted(connection: sa.Connection, kinds: Collection[str]) -> frozenset[tuple[str, int]]:
    """Return cluster and VMID of open findings of these kinds."""
    columns = findings.c
    query = sa.select(columns.cluster, columns.vmid).where(
        columns.healed_at.is_(None), columns.kind.in_(sorted(kinds)), columns.vmid.is_not(None)
    )
    return frozenset((row.cluster, row.vmid) for row in connection.execute(query))


def get(connection: sa.Connection, finding_id: int) -> Kept:
    """Return an open finding. Raises NotFound."""
    query = sa.select(*_KEPT).where(findings.c.id == finding_id, findings.c.healed_at.is_(None))
    row = connection.execute(query).first()
    if row is None:
        raise NotFound(f"There is no open finding {finding_id}.", finding_id=finding_id)
    return Kept(*row)


def healed(connection: sa.Connection, ids: Collection[int]) -> None:
    """Close findings that are no longer seen: as healed if that was tried, else as gone."""
    for key in ids:
        mine = findings.c.id == key
        connection.execute(
            findings.update()
            .where(mine, findings.c.healed_at.is_(None))
            .values(
                healed_at=clock.utcnow(),
                healed_by=sa.case((findings.c.heals > 0, findings.c.heal), else_=None),
            )
        )


def tried(
    connection: sa.Connection, finding_id: int, answer: str, operation_id: int | None = None
) -> None:
    """Count one more try to heal it, and store its result or operation."""
    connection.execute(
        findings.update()
        .where(findings.c.id == finding_id)
        .values(
            heals=findings.c.heals + 1,
            tried_at=clock.utcnow(),
            answer=answer,
            operation_id=operation_id,
        )
    )


def answers(connection: sa.Connection) -> None:
    """Store the failure of open findings whose last operation failed."""
    failed = operations.c.state == OperationState.FAILED
    rows = connection.execute(
        sa.select(findings.c.id, operations.c.message)
        .join(operations, operations.c.id == findings.c.operation_id)
        .where(findings.c.healed_at.is_(None), failed)
    ).all()
    for row in rows:
        mine = findings.c.id == row.id
        connection.execute(findings.update().where(mine).values(answer=row.message))
