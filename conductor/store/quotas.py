"""Quota: the sum over the live servers, checked and taken under one lock of the project."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from common import clock
from common.errors import QuotaExceeded
from common.messages.reports import Step
from conductor.store import arrival
from db.schema import keypairs, project_locks, quota_limits, servers


def lock(connection: sa.Connection, project_id: str) -> None:
    """Hold the project's lock until the transaction ends. SQLite's writer holds every lock."""
    if connection.dialect.name == "sqlite":
        return
    mine = project_locks.c.project_id == project_id
    query = sa.select(project_locks.c.project_id).where(mine).with_for_update()
    if connection.execute(query).first() is not None:
        return
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert

        connection.execute(
            insert(project_locks).values(project_id=project_id).on_conflict_do_nothing()
        )
    else:
        connection.execute(
            project_locks.insert().prefix_with("IGNORE").values(project_id=project_id)
        )
    connection.execute(query)


def limits(
    connection: sa.Connection, project_id: str, defaults: Mapping[str, int]
) -> dict[str, int]:
    """The project's limits, -1 for none."""
    own = connection.execute(
        sa.select(quota_limits.c.resource, quota_limits.c.hard_limit).where(
            quota_limits.c.project_id == project_id
        )
    )
    return {**defaults, **dict(own.all())}


def usage(connection: sa.Connection, project_id: str) -> dict[str, int]:
    """What the live servers of the project use; memory in MiB."""
    columns = servers.c
    row = connection.execute(
        sa.select(
            sa.func.count(),
            sa.func.coalesce(sa.func.sum(columns.vcpus), 0),
            sa.func.coalesce(sa.func.sum(columns.memory_mib), 0),
        ).where(columns.project_id == project_id, columns.deleted_at.is_(None))
    ).one()
    return {"instances": int(row[0]), "cores": int(row[1]), "ram": int(row[2])}


def affordable(
    connection: sa.Connection,
    project_id: str,
    defaults: Mapping[str, int],
    each: Mapping[str, int],
    at_least: int,
    at_most: int,
) -> tuple[int, Step]:
    """How many of something the project may have now, under its lock, ``at_most`` at the most;
    and the step that tells of it.

    ``each`` is what one takes of each resource. Raises QuotaExceeded, in Nova's words, when that
    is less than ``at_least``.
    """
    began = clock.utcnow()
    lock(connection, project_id)
    allowed = limits(connection, project_id, defaults)
    used = usage(connection, project_id)
    count = at_most
    for resource, amount in each.items():
        if allowed[resource] >= 0 and amount > 0:
            count = min(count, (allowed[resource] - used[resource]) // amount)
    if count >= at_least:
        asked = {name: amount * count for name, amount in each.items()}
        return count, arrival.quota(began, allowed, used, asked)
    _refuse(allowed, used, {name: amount * at_least for name, amount in each.items()})
    raise AssertionError("unreachable: something must have been over its limit")


def _refuse(
    allowed: Mapping[str, int], used: Mapping[str, int], wanted: Mapping[str, int]
) -> None:
    over = sorted(
        name
        for name, amount in wanted.items()
        if allowed[name] >= 0 and used[name] + amount > allowed[name]
    )
    if not over:
        return
    raise QuotaExceeded(
        f"Quota exceeded for {', '.join(over)}: "
        f"Requested {', '.join(str(wanted[name]) for name in over)}, "
        f"but already used {', '.join(str(used[name]) for name in over)} "
        f"of {', '.join(str(allowed[name]) for name in over)} {', '.join(over)}",
        resource=over,
        limit=[allowed[name] for name in over],
        used=[used[name] for name in over],
        requested=[wanted[name] for name in over],
    )


def keypairs_of(connection: sa.Connection, user_id: str) -> int:
    """How many key pairs a user has."""
    query = sa.select(sa.func.count()).where(keypairs.c.user_id == user_id)
    return int(connection.execute(query).scalar_one())


def set_limits(connection: sa.Connection, project_id: str, wanted: Mapping[str, int]) -> None:
    """Replace these limits of the project."""
    connection.execute(
        quota_limits.delete().where(
            quota_limits.c.project_id == project_id, quota_limits.c.resource.in_(list(wanted))
        )
    )
    if wanted:
        connection.execute(
            quota_limits.insert(),
            [
                {"project_id": project_id, "resource": resource, "hard_limit": limit}
                for resource, limit in wanted.items()
            ],
        )


def forget_limits(connection: sa.Connection, project_id: str) -> None:
    """Back to the defaults."""
    connection.execute(quota_limits.delete().where(quota_limits.c.project_id == project_id))
