"""Quota of block storage: the sum over existing resources, checked and taken under one lock."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from oslo_config import cfg

from common.errors import QuotaExceeded
from common.resources import quotas as options
from conductor.store.quotas import quotas
from db.reads.volumes.volume_usage import usage


def limits(connection: sa.Connection, project_id: str, conf: cfg.ConfigOpts) -> dict[str, int]:
    """Return the project's limits, -1 for none, under Cinder's names."""
    defaults = {name: conf.quota[name] for name in options.OF_VOLUMES}
    return quotas.limits(connection, project_id, defaults)


def take(
    connection: sa.Connection,
    project_id: str,
    conf: cfg.ConfigOpts,
    wanted: Mapping[str, int],
    type_name: str | None,
    size_gib: int,
) -> None:
    """Raise QuotaExceeded, in Cinder's words, unless the project may have this much more.

    ``wanted``: of ``volumes``, ``snapshots``, ``gigabytes``, or of ``backups`` and
    ``backup_gigabytes``. ``size_gib``: of one volume, which
    has a limit of its own. The project's lock is held until the transaction ends.
    """
    quotas.lock(connection, project_id)
    allowed, used = limits(connection, project_id, conf), usage(connection, project_id)
    largest = allowed["per_volume_gigabytes"]
    if 0 <= largest < size_gib:
        raise QuotaExceeded(
            f"Requested volume size {size_gib}G is larger than maximum allowed limit {largest}G.",
            resource="per_volume_gigabytes",
            limit=largest,
            used=0,
            requested=size_gib,
        )
    for name, amount in wanted.items():
        for resource in (name, f"{name}_{type_name}"):
            _require(allowed, used, resource, amount)


def take_of_type(
    connection: sa.Connection,
    project_id: str,
    conf: cfg.ConfigOpts,
    wanted: Mapping[str, int],
    type_name: str,
) -> None:
    """Raise QuotaExceeded unless the project may have this much more of one type.

    The total over all types is not checked, as the project has that already. The project's lock
    is held as ``take`` holds it.
    """
    quotas.lock(connection, project_id)
    allowed, used = limits(connection, project_id, conf), usage(connection, project_id)
    for name, amount in wanted.items():
        _require(allowed, used, f"{name}_{type_name}", amount)


def _require(
    allowed: Mapping[str, int], used: Mapping[str, int], resource: str, amount: int
) -> None:
    limit, has = allowed.get(resource, -1), used.get(resource, 0)
    if 0 <= limit < has + amount:
        raise QuotaExceeded(
            _too_many(resource, limit, has, amount),
            resource=resource,
            limit=limit,
            used=has,
            requested=amount,
        )


def _too_many(resource: str, limit: int, used: int, wanted: int) -> str:
    if resource == "backups":
        return f"Maximum number of backups allowed ({limit}) exceeded"
    if resource == "backup_gigabytes":
        return (
            f"Requested backup exceeds allowed Backup gigabytes quota. Requested {wanted}G, quota "
            f"is {limit}G and {used}G has been consumed."
        )
    if resource.startswith("gigabytes"):
        return (
            f"Requested volume or snapshot exceeds allowed {resource} quota. Requested "
            f"{wanted}G, quota is {limit}G and {used}G has been consumed."
        )
    if resource.startswith("snapshots"):
        return f"Maximum number of snapshots allowed ({limit}) exceeded"
    return f"Maximum number of volumes allowed ({limit}) exceeded for quota '{resource}'."
