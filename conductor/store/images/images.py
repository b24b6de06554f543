"""Images on the storages of the clusters, as heartbeats report them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from common import clock
from common.messages.facts import ClusterFacts, ImageFacts
from common.resources import image_files
from conductor.store.images import image_members
from db.schema import images


def take(connection: sa.Connection, cluster: ClusterFacts) -> None:
    """Store a cluster's images: add new ones, delete those that no cluster has any more."""
    # An image of several clusters is one row, which their heartbeats update in turn.
    # Those with an owner are on no import storage.
    query = (
        sa.select(images)
        .where(images.c.project_id.is_(None))
        .order_by(images.c.id)
        .with_for_update()
    )
    known = {row.id: row for row in connection.execute(query)}
    # Files of uploads have rows of their own, written before the files, in this cloud or another.
    listed = {
        image.id: image for image in cluster.images if not image_files.is_upload(image.volid)
    }
    for image in listed.values():
        row = known.get(image.id)
        if row is None:
            connection.execute(images.insert().values(**_image_row(image, cluster.cluster)))
            continue
        sizes = (row.size_bytes, row.virtual_size_bytes)
        if image.virtual_size_bytes and sizes != (image.size_bytes, image.virtual_size_bytes):
            _resize(connection, image)
        if row.locations.get(cluster.cluster) != image.volid:
            _relocate(connection, image.id, {**row.locations, cluster.cluster: image.volid})
    for image_id, row in known.items():
        if cluster.cluster in row.locations and image_id not in listed:
            rest = {name: at for name, at in row.locations.items() if name != cluster.cluster}
            if rest:
                _relocate(connection, image_id, rest)
            else:
                image_members.forget(connection, image_id)
                connection.execute(images.delete().where(images.c.id == image_id))


def _image_row(image: ImageFacts, cluster: str) -> dict[str, Any]:
    now = clock.utcnow()
    return {
        "id": image.id,
        "name": image.name,
        "status": "active",
        "size_bytes": image.size_bytes,
        "virtual_size_bytes": image.virtual_size_bytes,
        "disk_format": image.disk_format,
        "min_disk_gib": _gib(image),
        "properties": {},
        "locations": {cluster: image.volid},
        "created_at": image.created_at or now,
        "updated_at": now,
    }


def _gib(image: ImageFacts) -> int:
    """Return the image's minimum disk: smaller flavors are refused."""
    return -(-(image.virtual_size_bytes or 0) // 2**30)


def _resize(connection: sa.Connection, image: ImageFacts) -> None:
    connection.execute(
        images.update()
        .where(images.c.id == image.id)
        .values(
            size_bytes=image.size_bytes,
            virtual_size_bytes=image.virtual_size_bytes,
            min_disk_gib=_gib(image),
            updated_at=clock.utcnow(),
        )
    )


def _relocate(connection: sa.Connection, image_id: str, locations: dict[str, str]) -> None:
    connection.execute(
        images.update()
        .where(images.c.id == image_id)
        .values(locations=locations, updated_at=clock.utcnow())
    )
