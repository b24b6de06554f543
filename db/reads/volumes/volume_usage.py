"""What projects use of block storage."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from db.schema import volume_backups, volume_snapshots, volume_types, volumes

_C = volumes.c
_T = volume_types.c
_S = volume_snapshots.c
_B = volume_backups.c


def usage(connection: sa.Connection, project_id: str) -> dict[str, int]:
    """Return what a project's volumes, snapshots and backups use, and the first two by type.

    A volume that is being retyped counts for both types.
    """
    used: dict[str, int] = {"volumes": 0, "snapshots": 0, "gigabytes": 0}
    used |= {"backups": 0, "backup_gigabytes": 0}
    rows = connection.execute(_USAGE, {"project_id": project_id})
    for kind, counts, name, count, gib in rows:
        size = "backup_gigabytes" if kind == "backups" else "gigabytes"
        for resource, amount in ((kind, int(count)), (size, int(gib or 0))):
            if counts:
                used[resource] += amount
            if name is not None:
                of_type = f"{resource}_{name}"
                used[of_type] = used.get(of_type, 0) + amount
    return used


def _sums(kind: str, counts: int, size: Any, rows: Any, project: Any) -> sa.Select[Any]:
    """Select number and size by type; ``counts``: whether they count beside their types, too."""
    what: tuple[Any, ...] = (sa.literal_column(f"'{kind}'"), sa.literal_column(str(counts)))
    return (
        sa.select(*what, _T.name, sa.func.count(), sa.func.sum(size))
        .select_from(rows)
        .where(project == sa.bindparam("project_id"))
        .group_by(_T.name)
    )


_OF_TYPE = _T.id == _C.type_id
_USAGE = sa.union_all(
    _sums("volumes", 1, _C.size_gib, volumes.outerjoin(volume_types, _OF_TYPE), _C.project_id),
    _sums(
        "snapshots",
        1,
        _S.size_gib,
        volume_snapshots.join(volumes, _C.id == _S.volume_id).outerjoin(volume_types, _OF_TYPE),
        _S.project_id,
    ),
    _sums(
        "volumes",
        0,
        _C.size_gib,
        volumes.join(volume_types, _T.id == _C.new_type_id),
        _C.project_id,
    ),
    sa.select(
        sa.literal_column("'backups'"),
        sa.literal_column("1"),
        sa.cast(sa.null(), _T.name.type),
        sa.func.count(),
        sa.func.sum(_B.size_gib),
    ).where(_B.project_id == sa.bindparam("project_id")),
)
