"""What the images of a project take up, and whether it may have more of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from common.errors import TooLarge
from common.resources.quotas import allows
from db.schema import images

_C = images.c
_MIB = 1 << 20
#: statuses of images whose data wait to be imported, or are being downloaded
_STAGED = ("uploading", "importing")
_UPLOADING = ("saving", *_STAGED)


@dataclass(frozen=True)
class Usage:
    """Bytes and numbers of images, under Glance's names of their limits."""

    used: Mapping[str, int]
    of_project: frozenset[str]
    """Those of the images that were asked for which the project has."""

    def require(self, project_id: str, limits: Mapping[str, int], more: Mapping[str, int]) -> None:
        """Raise TooLarge unless the project may have this much more. Sizes in bytes."""
        for name, wanted in more.items():
            unit = _unit(name)
            if not allows(
                limits[name] * unit if limits[name] >= 0 else -1, self.used[name] + wanted
            ):
                used, asked = -(-self.used[name] // unit), -(-wanted // unit)
                raise TooLarge(
                    f"Project {project_id} is over a limit for {name}: the limit is "
                    f"{limits[name]}, {used} are used and {asked} more were asked for."
                )

    def shown(self, limits: Mapping[str, int]) -> dict[str, dict[str, int]]:
        """Return limits and usage as Glance shows them: sizes in MiB."""
        return {
            name: {"limit": limits[name], "usage": self.used[name] // _unit(name)}
            for name in limits
        }


def _unit(name: str) -> int:
    return 1 if "_count_" in name else _MIB


def read(
    connection: sa.Connection, project_id: str, writing: Mapping[str, int] | None = None
) -> Usage:
    """Return what a project uses.

    ``writing``: images whose data are being sent, of any project, and how many bytes came.
    """
    sent = writing or {}
    staged = _C.status.in_(_STAGED)
    row = connection.execute(
        sa.select(
            sa.func.count(),
            _sum(_C.status.in_(_UPLOADING), sa.literal(1)),
            _sum(~staged, _C.size_bytes),
            _sum(staged, _C.size_bytes),
        ).where(_C.project_id == project_id, _C.status != "deleted")
    ).one()
    mine = _of(connection, project_id, sent.keys())
    return Usage(
        {
            "image_count_total": int(row[0]),
            "image_count_uploading": int(row[1]) + len(mine),
            "image_size_total": int(row[2]),
            "image_stage_total": int(row[3]) + sum(sent[one] for one in mine),
        },
        mine,
    )


def _sum(which: sa.ColumnElement[bool], value: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.func.sum(sa.case((which, value), else_=0)), 0)


def _of(connection: sa.Connection, project_id: str, image_ids: Collection[str]) -> frozenset[str]:
    """Return those of these images that the project has and nobody counts yet."""
    if not image_ids:
        return frozenset()
    query = sa.select(_C.id).where(
        _C.id.in_(list(image_ids)), _C.project_id == project_id, _C.status == "queued"
    )
    return frozenset(connection.execute(query).scalars())
