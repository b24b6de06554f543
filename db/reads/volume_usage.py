"""What projects use of block storage."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from db.schema import volume_snapshots, volume_types, volumes

_C = volumes.c
_T = volume_types.c
_S = volume_snapshots.c


def usage(connection: sa.Connection, project_id: str) -> dict[str, int]:
    """Return what a project's volumes and snapshots use, in all and of each type.

    A volume that is being retyped counts for both types.
    """
    used: dict[str, int] = {"volumes": 0, "snapshots": 0, "gigabytes": 0}
    type_of = _T.name
    of_volumes = (
        sa.select(type_of, sa.func.count(), sa.func.sum(_C.size_gib))
        .select_from(volumes.outerjoin(volume_types, _T.id == _C.type_id))
        .where(_C.project_id == project_id)
        .group_by(type_of)
    )
    of_snapshots = (
        sa.select(type_of, sa.func.count(), sa.func.sum(_S.size_gib))
        .select_from(
            volume_snapshots.join(volumes, _C.id == _S.volume_id).outerjoin(
                volume_types, _T.id == _C.type_id
            )
        )
        .where(_S.project_id == project_id)
        .group_by(type_of)
    )
    for kind, query in (("volumes", of_volumes), ("snapshots", of_snapshots)):
        for name, count, gib in connection.execute(query):
            for resource, amount in ((kind, int(count)), ("gigabytes", int(gib or 0))):
                used[resource] += amount
                if name is not None:
                    of_type = f"{resource}_{name}"
                    used[of_type] = used.get(of_type, 0) + amount
    for name, count, gib in connection.execute(_retyped(project_id)):
        for resource, amount in (("volumes", int(count)), ("gigabytes", int(gib or 0))):
            used[f"{resource}_{name}"] = used.get(f"{resource}_{name}", 0) + amount
    return used


def _retyped(project_id: str) -> sa.Select[Any]:
    """Select what volumes will use of the types that they are getting."""
    return (
        sa.select(_T.name, sa.func.count(), sa.func.sum(_C.size_gib))
        .select_from(volumes.join(volume_types, _T.id == _C.new_type_id))
        .where(_C.project_id == project_id)
        .group_by(_T.name)
    )
