"""Quota: the sum over the live servers, checked and taken under one lock per project."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import QuotaExceeded
from common.messages.commands import GuestFile
from common.messages.reports import Step
from common.resources.quotas import DEFAULT_CLASS
from conductor.store.ledger import request_steps
from db.reads.quotas import counted
from db.schema import keypairs, project_locks, quota_classes, quota_limits, servers

# Built once: every create executes them.
_PROJECT: sa.BindParameter[str] = sa.bindparam("project_id")
_LOCK = (
    sa.select(project_locks.c.project_id)
    .where(project_locks.c.project_id == _PROJECT)
    .with_for_update()
)
# The later of two rows counts: the project's own limit.
_OF_CLASS = sa.select(
    sa.literal_column("0").label("own"), quota_classes.c.resource, quota_classes.c.hard_limit
).where(quota_classes.c.class_name == DEFAULT_CLASS)
_OWN = sa.select(
    sa.literal_column("1").label("own"), quota_limits.c.resource, quota_limits.c.hard_limit
).where(quota_limits.c.project_id == _PROJECT)
_LIMITS = sa.union_all(_OF_CLASS, _OWN).order_by("own")
_USED = (
    sa.func.count(),
    sa.func.coalesce(sa.func.sum(servers.c.vcpus), 0),
    sa.func.coalesce(sa.func.sum(servers.c.memory_mib), 0),
)
_LIVE = (servers.c.project_id == _PROJECT, servers.c.deleted_at.is_(None), counted())
_USAGE = sa.select(*_USED).where(*_LIVE)
_NOTHING: tuple[sa.ColumnElement[Any], ...] = (
    sa.literal_column("0").label("cores"),
    sa.literal_column("0").label("ram"),
)
# The usage is the last row.
_LIMITS_AND_USAGE = sa.union_all(
    _OF_CLASS.add_columns(*_NOTHING),
    _OWN.add_columns(*_NOTHING),
    sa.select(sa.literal_column("2"), sa.literal_column("''"), *_USED).where(*_LIVE),
).order_by("own")


def lock(connection: sa.Connection, project_id: str) -> None:
    """Hold the lock of a project, or of a user, until the transaction ends.

    SQLite's writer holds every lock.
    """
    if connection.dialect.name == "sqlite":
        return
    mine = {"project_id": project_id}
    if connection.execute(_LOCK, mine).first() is not None:
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
    connection.execute(_LOCK, mine)


def limits(
    connection: sa.Connection, project_id: str, defaults: Mapping[str, int]
) -> dict[str, int]:
    """Return the project's limits, -1 for none."""
    own = connection.execute(_LIMITS, {"project_id": project_id})
    return {**defaults, **{row.resource: row.hard_limit for row in own}}


def usage(connection: sa.Connection, project_id: str) -> dict[str, int]:
    """Return what the live servers of the project use; memory in MiB."""
    return _used(connection.execute(_USAGE, {"project_id": project_id}).one())


def _used(row: Sequence[Any]) -> dict[str, int]:
    return {"instances": int(row[0]), "cores": int(row[1]), "ram": int(row[2])}


def locked(
    connection: sa.Connection, project_id: str, defaults: Mapping[str, int]
) -> dict[str, int]:
    """Return the project's limits, -1 for none; its lock is held until the transaction ends."""
    lock(connection, project_id)
    return limits(connection, project_id, defaults)


def locked_with_usage(
    connection: sa.Connection, project_id: str, defaults: Mapping[str, int]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return what ``locked`` and ``usage`` return, read by one statement."""
    lock(connection, project_id)
    *own, used = connection.execute(_LIMITS_AND_USAGE, {"project_id": project_id})
    allowed = {**defaults, **{row.resource: int(row.hard_limit) for row in own}}
    return allowed, _used(used[2:])


def take(
    connection: sa.Connection,
    project_id: str,
    defaults: Mapping[str, int],
    each: Mapping[str, int],
) -> Step:
    """Take one thing, that uses so much of each resource, from a project's quota.

    Return the step to store. Its lock is held until the transaction ends. Raises QuotaExceeded.
    """
    began = clock.utcnow()
    allowed, used = locked_with_usage(connection, project_id, defaults)
    return affordable(used, allowed, each, (1, 1), began)[1]


def affordable(
    used: Mapping[str, int],
    allowed: Mapping[str, int],
    each: Mapping[str, int],
    counts: tuple[int, int],
    began: datetime.datetime,
) -> tuple[int, Step]:
    """Return how many of something the project may have now, and the step to store.

    ``used`` is what it has, and ``allowed`` its limits, both read under the lock; ``each`` what
    one uses of each resource; ``counts`` the least and the most that are requested. The step
    began at ``began``. Raises QuotaExceeded when the least is too many.
    """
    least, count = counts
    for resource, amount in each.items():
        if allowed[resource] >= 0 and amount > 0:
            count = min(count, (allowed[resource] - used[resource]) // amount)
    if count < least:
        raise _exceeded(allowed, used, each, counts)
    asked = {name: amount * count for name, amount in each.items()}
    return count, request_steps.quota(began, allowed, used, asked)


def _exceeded(
    allowed: Mapping[str, int],
    used: Mapping[str, int],
    each: Mapping[str, int],
    counts: tuple[int, int],
) -> QuotaExceeded:
    """Return the refusal in Nova's words: every resource that doesn't suffice for all."""
    least, most = counts
    wanted = {name: amount * most for name, amount in each.items()}
    over = sorted(
        name
        for name, amount in wanted.items()
        if amount and allowed[name] >= 0 and used[name] + amount > allowed[name]
    )
    requested = {name: str(amount) for name, amount in wanted.items()}
    if least != most:
        requested["instances"] = f"{least}-{most}"
    names = ", ".join(over)
    return QuotaExceeded(
        f"Quota exceeded for {names}: Requested {', '.join(requested[name] for name in over)}, "
        f"but already used {', '.join(str(used[name]) for name in over)} "
        f"of {', '.join(str(allowed[name]) for name in over)} {names}",
        resource=over,
        limit=[allowed[name] for name in over],
        used=[used[name] for name in over],
        requested=[wanted[name] for name in over],
    )


def check_metadata(allowed: Mapping[str, int], items: Mapping[str, str], before: int = 0) -> None:
    """Raise QuotaExceeded, in Nova's words, for more items than one server may have.

    ``before``: how many it has now.
    """
    limit = allowed["metadata_items"]
    if 0 <= limit < len(items):
        raise QuotaExceeded(
            f"Maximum number of metadata items exceeds {limit}",
            resource="metadata_items",
            limit=limit,
            used=before,
            requested=len(items) - before,
        )


def check_image_metadata(allowed: Mapping[str, int], items: Mapping[str, str]) -> None:
    """Raise QuotaExceeded, in Nova's words, for more items than one image may have."""
    limit = allowed["metadata_items"]
    if 0 <= limit < len(items):
        raise QuotaExceeded(
            "Image metadata limit exceeded",
            resource="metadata_items",
            limit=limit,
            used=0,
            requested=len(items),
        )


def check_files(allowed: Mapping[str, int], files: Sequence[GuestFile]) -> None:
    """Raise QuotaExceeded, in Nova's words, for too many files, or too long ones."""
    sizes = {
        "injected_files": (len(files), "Personality file limit exceeded"),
        "injected_file_path_bytes": (
            max((len(one.path) for one in files), default=0),
            "Personality file path exceeds maximum {}",
        ),
        "injected_file_content_bytes": (
            max((len(one.contents) for one in files), default=0),
            "Personality file content exceeds maximum {}",
        ),
    }
    for resource, (size, words) in sizes.items():
        limit = allowed[resource]
        if 0 <= limit < size:
            raise QuotaExceeded(
                words.format(limit), resource=resource, limit=limit, used=0, requested=size
            )


def check_keypairs(connection: sa.Connection, user_id: str, allowed: Mapping[str, int]) -> None:
    """Raise QuotaExceeded, in Nova's words, if a user has as many key pairs as allowed.

    The user gets no other key pair until the transaction ends.
    """
    lock(connection, user_id)
    limit, used = allowed["key_pairs"], keypairs_of(connection, user_id)
    if 0 <= limit <= used:
        raise QuotaExceeded(
            "Quota exceeded, too many key pairs.",
            resource="key_pairs",
            limit=limit,
            used=used,
            requested=1,
        )


def keypairs_of(connection: sa.Connection, user_id: str) -> int:
    """Return how many key pairs a user has."""
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


def set_class_limits(
    connection: sa.Connection, class_name: str, wanted: Mapping[str, int]
) -> None:
    """Replace these limits of a class, one writer at a time."""
    lock(connection, f"quota class {class_name}"[:255])
    mine = quota_classes.c.class_name == class_name
    connection.execute(
        quota_classes.delete().where(mine, quota_classes.c.resource.in_(list(wanted)))
    )
    if wanted:
        connection.execute(
            quota_classes.insert(),
            [
                {"class_name": class_name, "resource": resource, "hard_limit": limit}
                for resource, limit in wanted.items()
            ],
        )


def delete_limits(connection: sa.Connection, project_id: str, resources: Sequence[str]) -> None:
    """Reset the limits of these resources to the defaults."""
    mine = quota_limits.c
    connection.execute(
        quota_limits.delete().where(
            mine.project_id == project_id, mine.resource.in_(list(resources))
        )
    )


def rename_resources(connection: sa.Connection, names: Mapping[str, str]) -> None:
    """Rename resources (old → new) in the limits of projects and classes.

    A limit that has the new name already is that of a deleted resource, and is replaced.
    """
    for table in (quota_limits, quota_classes):
        resource = table.c.resource
        for old, new in names.items():
            connection.execute(table.delete().where(resource == new))
            connection.execute(table.update().where(resource == old).values(resource=new))
