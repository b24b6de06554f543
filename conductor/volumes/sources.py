"""What new volumes are copied from: images; and which server must reach them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.errors import ImageNotFound, Invalid, ServerNotFound
from common.messages.commands import VolumeSource
from common.messages.scheduling import ImageHome
from conductor.messages import NewVolume
from conductor.store.transactions import Transaction
from conductor.store.volumes import origins
from conductor.volumes.places import ANYWHERE, Wish

GIB = 1 << 30


@dataclass(frozen=True)
class Found:
    """A new volume's source, as far as its place depends on it."""

    wish: Wish = ANYWHERE
    bootable: bool = False
    image_metadata: Mapping[str, Any] | None = None
    host: str | None = None
    """One that must reach it."""
    volids: Mapping[str, str] = field(default_factory=dict)
    """Of an image: cluster → volume."""
    home: ImageHome | None = None
    """The only node where a server's image can be copied from; None of others."""

    def source(self, cluster: str) -> VolumeSource | None:
        """Return what an agent of this cluster copies; None: nothing."""
        volid = self.volids.get(cluster)
        return None if volid is None else VolumeSource(volid)


def find(connection: Transaction, new: NewVolume) -> Found:
    """Return the source of a new volume. Raises NotFound of each kind, and Invalid."""
    host = None
    if new.local_to_server is not None:
        host = _host_of(connection, new.local_to_server, new.project_id)
    if new.image_id is not None:
        return _image(connection, new, host)
    if new.snapshot_id is not None or new.source_volume_id is not None:
        # The source would have to rest until the copy is whole.
        raise Invalid("Volumes of snapshots and of other volumes are not made here.")
    return Found(host=host)


def _host_of(connection: Transaction, server_uuid: str, project_id: str) -> str | None:
    row = origins.server(connection, server_uuid, project_id)
    if row is None:
        raise ServerNotFound(f"Instance {server_uuid} could not be found.")
    return None if row.host is None else str(row.host)


def _image(connection: Transaction, new: NewVolume, host: str | None) -> Found:
    image_id = str(new.image_id)
    found = origins.image(connection, image_id, new.project_id)
    if found is None:
        raise ImageNotFound("Invalid image identifier or unable to access requested image.")
    if found.status != "active":
        raise Invalid(f"Invalid input received: Image {image_id} is not active.")
    if found.disk_format == "iso":
        raise Invalid(f"Image {image_id} is an ISO image, of which no volume can be made.")
    size = -(-max(found.virtual_size_bytes or 0, found.size_bytes) // GIB)
    if new.size_gib < size:
        raise Invalid(
            f"Invalid input received: Size of specified image {size}GB is larger than volume "
            f"size {new.size_gib}GB."
        )
    if new.size_gib < found.min_disk_gib:
        raise Invalid(
            f"Invalid input received: Volume size {new.size_gib}GB cannot be smaller than the "
            f"image minDisk size {found.min_disk_gib}GB."
        )
    volids = origins.image_volumes(connection, image_id)
    kept = {
        "image_id": found.id,
        "image_name": found.name,
        "checksum": found.md5 or "",
        "container_format": found.container_format,
        "disk_format": found.disk_format,
        "min_disk": str(found.min_disk_gib),
        "min_ram": str(found.min_ram_mib),
        "size": str(found.size_bytes),
        **found.properties,
    }
    return Found(
        Wish(0, clusters=frozenset(volids)),
        bootable=True,
        image_metadata=kept,
        host=host,
        volids=volids,
        home=home_of(found.home),
    )


def home_of(home: Mapping[str, Any] | None) -> ImageHome | None:
    """Return the only node where a server's image, which is there, can be copied from.

    Proxmox VE imports a template's disk on the template's node alone, whatever its storage.
    """
    return None if home is None else dataclasses.replace(ImageHome(**home), shared=False)
