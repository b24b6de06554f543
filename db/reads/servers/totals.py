"""How many servers pass a list's filters, on all its pages, and what they take together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from db import schema
from db.reads.patterns import bounded
from db.reads.servers.servers import Filters, conditions

_T = schema.servers.c
_SUMS = tuple(
    sa.func.coalesce(sa.func.sum(column), 0) for column in (_T.vcpus, _T.memory_mib, _T.disk_gib)
)


@dataclass(frozen=True)
class Totals:
    """Sums of servers; sizes in MiB and GiB."""

    states: Mapping[tuple[str, str | None], int]
    """(vm_state, task_state) → servers."""
    vcpus: int = 0
    memory_mib: int = 0
    disk_gib: int = 0


def totals(connection: sa.Connection, filters: Filters) -> Totals:
    """Return the totals of all servers that pass `filters`: one query. Raises Invalid for a
    pattern that can't be asked."""
    if any(not values for values in filters.exact.values()):
        return Totals({})
    states = (_T.vm_state, _T.task_state)
    statement = (
        sa.select(*states, sa.func.count(), *_SUMS)
        .where(*conditions(connection, filters))
        .where(*(_T[name] == value for name, value in filters.visible.items()))
        .group_by(*states)
    )
    with bounded(filters.searched):
        rows = connection.execute(statement).all()
    return Totals(
        {(vm, task): count for vm, task, count, *_ in rows},
        *(sum(int(row[column]) for row in rows) for column in (3, 4, 5)),
    )
