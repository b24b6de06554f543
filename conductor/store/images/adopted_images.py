"""Images whose data were found in clusters, and that the record lost, or has without data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from common import clock
from common.errors import Conflict
from common.messages.scheduling import ImageHome
from conductor.store.images import uploads
from conductor.store.images.server_images import ACTIVE
from db.schema import images

_C, _GIB = images.c, 1 << 30


def with_data(connection: sa.Connection) -> frozenset[str]:
    """Return the IDs of all images that have data in a cluster, by the record."""
    rows = connection.execute(sa.select(_C.id, _C.locations))
    return frozenset(row.id for row in rows if row.locations)


def upload(
    connection: sa.Connection,
    image_id: str,
    project_id: str,
    digest: str,
    size_bytes: int,
    disk_format: str,
    locations: Mapping[str, str],
) -> None:
    """Write that the data of an upload are there; ``digest``: how their SHA-512 begins.

    Raises Conflict if the image has other data, or another owner.
    """
    row = uploads.locked(connection, image_id)
    if row is not None and row.checksum and not row.checksum.startswith(digest):
        raise Conflict(f"By the record image {image_id} has other data.")
    values: dict[str, Any] = {"size_bytes": size_bytes, "disk_format": disk_format}
    if row is None or row.md5 is None:
        # It isn't known, which is not the same as that there are no data.
        values["md5"] = ""
    _write(connection, row, image_id, project_id, {**values, "locations": dict(locations)})


def copy(
    connection: sa.Connection,
    image_id: str,
    project_id: str,
    home: ImageHome,
    volid: str,
    size_bytes: int,
) -> None:
    """Write an image whose template, its only copy, was found. Raises Conflict as above."""
    row = uploads.locked(connection, image_id)
    values = {
        **{"size_bytes": size_bytes, "virtual_size_bytes": size_bytes, "disk_format": "qcow2"},
        **{"min_disk_gib": -(-size_bytes // _GIB), "home": dataclasses.asdict(home)},
        "locations": {home.cluster: volid},
    }
    _write(connection, row, image_id, project_id, values)


def _write(
    connection: sa.Connection,
    row: Any | None,
    image_id: str,
    project_id: str,
    values: Mapping[str, Any],
) -> None:
    if row is not None and (row.locations or row.project_id != project_id):
        raise Conflict(f"Image {image_id} has changed since it was compared.")
    now = clock.utcnow()
    written = {**values, "status": ACTIVE, "updated_at": now}
    if row is not None:
        connection.execute(images.update().where(_C.id == image_id).values(**written))
        return
    made = {"name": f"adopted-{image_id[:8]}", "properties": {}, "created_at": now}
    connection.execute(
        images.insert().values(id=image_id, project_id=project_id, **made, **written)
    )
