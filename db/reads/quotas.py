"""A project's own limits, and what its living servers and its server groups use."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from common.resources.quotas import DEFAULT_CLASS
from common.resources.states import TaskState, VmState
from db import schema

_SERVERS = schema.servers.c
_LIMITS = schema.quota_limits.c
_CLASSES = schema.quota_classes.c
_GROUPS = schema.server_groups.c
_USED = ("instances", "cores", "ram", "server_groups")


@dataclass(frozen=True, slots=True)
class Quotas:
    """Limits that were set (resource → limit, -1: none) and usage (resource → sum; MiB)."""

    limits: Mapping[str, int]
    used: Mapping[str, int]


def counted() -> sa.ColumnElement[bool]:
    """Return which living servers a quota counts: all but soft-deleted ones, as in Nova.

    A soft-deleted server counts again as soon as its restore begins.
    """
    return sa.or_(
        _SERVERS.vm_state != VmState.SOFT_DELETED,
        _SERVERS.task_state.is_not_distinct_from(TaskState.RESTORING),
    )


def of_project(connection: sa.Connection, project_id: str) -> Quotas:
    """Return both, by one query."""
    used = (
        sa.select(
            sa.func.count().label("instances"),
            sa.func.coalesce(sa.func.sum(_SERVERS.vcpus), 0).label("cores"),
            sa.func.coalesce(sa.func.sum(_SERVERS.memory_mib), 0).label("ram"),
        )
        .where(_SERVERS.project_id == project_id, _SERVERS.deleted_at.is_(None), counted())
        .subquery()
    )
    groups = sa.select(sa.func.count()).where(_GROUPS.project_id == project_id)
    limits = sa.union_all(
        sa.select(
            sa.literal_column("0").label("own"), _CLASSES.resource, _CLASSES.hard_limit
        ).where(_CLASSES.class_name == DEFAULT_CLASS),
        sa.select(sa.literal_column("1").label("own"), _LIMITS.resource, _LIMITS.hard_limit).where(
            _LIMITS.project_id == project_id
        ),
    ).subquery()
    query = (
        sa.select(
            used.c.instances,
            used.c.cores,
            used.c.ram,
            groups.scalar_subquery().label("server_groups"),
            limits.c.resource,
            limits.c.hard_limit,
        )
        .select_from(used.outerjoin(limits, sa.true()))
        .order_by(limits.c.own)  # the project's own limit counts
    )
    rows = connection.execute(query).all()
    return Quotas(
        limits={row.resource: row.hard_limit for row in rows if row.resource is not None},
        used={name: int(getattr(rows[0], name)) for name in _USED},
    )


def own_limits(
    connection: sa.Connection, resources: Collection[str], project_id: str | None = None
) -> dict[str, dict[str, int]]:
    """Return the limits of these resources that were set: project → resource → limit, -1: none.

    ``project_id`` None: those of all projects.
    """
    query = sa.select(_LIMITS.project_id, _LIMITS.resource, _LIMITS.hard_limit)
    query = query.where(_LIMITS.resource.in_(list(resources)))
    if project_id is not None:
        query = query.where(_LIMITS.project_id == project_id)
    found: dict[str, dict[str, int]] = {}
    for row in connection.execute(query):
        found.setdefault(row.project_id, {})[row.resource] = row.hard_limit
    return found


def of_class(connection: sa.Connection, class_name: str) -> dict[str, int]:
    """Return the limits that a quota class sets: {resource: limit, -1 for none}."""
    query = sa.select(_CLASSES.resource, _CLASSES.hard_limit).where(
        _CLASSES.class_name == class_name
    )
    return dict(connection.execute(query).all())
