"""What new volumes are copied from: images, snapshots, volumes; which server must reach them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.errors import ImageNotFound, Invalid, ServerNotFound, VolumeNotFound
from common.messages.commands import VolumeSource
from common.volumes import SnapshotStatus, VolumeStatus
from conductor.messages import NewVolume
from conductor.store.transactions import Transaction
from conductor.store.volumes import origins, records
from conductor.volumes.places import ANYWHERE, Wish

GIB = 1 << 30


@dataclass(frozen=True)
class Found:
    """A new volume's source, as far as its place depends on it."""

    wish: Wish = ANYWHERE
    bootable: bool = False
    image_metadata: Mapping[str, Any] | None = None
    type_id: str | None = None
    host: str | None = None
    """One that must reach it."""
    volids: Mapping[str, str] = field(default_factory=dict)
    """Of an image: cluster → volume."""
    disk: VolumeSource | None = None
    """Of a volume or a snapshot."""

    def source(self, cluster: str) -> VolumeSource | None:
        """Return what an agent of this cluster copies; None: nothing."""
        volid = self.volids.get(cluster)
        return self.disk if volid is None else VolumeSource(volid)


def find(connection: Transaction, new: NewVolume) -> Found:
    """Return the source of a new volume. Raises NotFound of each kind, and Invalid."""
    host = None
    if new.local_to_server is not None:
        host = _host_of(connection, new.local_to_server, new.project_id)
    if new.image_id is not None:
        return _image(connection, new, host)
    if new.snapshot_id is not None:
        return _snapshot(connection, new, host)
    if new.source_volume_id is not None:
        return _volume(connection, new, host)
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
    )


def _snapshot(connection: Transaction, new: NewVolume, host: str | None) -> Found:
    snapshot_id = str(new.snapshot_id)
    row = origins.snapshot(connection, snapshot_id, new.project_id)
    if row is None:
        raise VolumeNotFound(f"Snapshot {snapshot_id} could not be found.")
    if row.status != SnapshotStatus.AVAILABLE:
        raise Invalid(
            f"Invalid snapshot: Originating snapshot status must be one of 'available' values: "
            f"{row.status}."
        )
    _require_size(new, row.size_gib, "snapshot")
    origin = records.locked(connection, row.volume_id, None)
    vmid = row.vmid or origin.vmid
    source = VolumeSource(row.volid or origin.volid, origin.node, vmid, row.snapname)
    return _of_disk(origin, source, host)


def _volume(connection: Transaction, new: NewVolume, host: str | None) -> Found:
    """The source stays locked until the new volume is written, and must be at rest."""
    row = records.locked(connection, str(new.source_volume_id), new.project_id)
    if row.status != VolumeStatus.AVAILABLE:
        raise Invalid(
            f"Invalid volume: Source volume {row.id} must be available to be copied, but its "
            f"status is: {row.status}. Take a snapshot and copy that."
        )
    _require_size(new, row.size_gib, "source volume")
    return _of_disk(row, VolumeSource(row.volid, row.node, row.vmid), host)


def _of_disk(row: Any, source: VolumeSource, host: str | None) -> Found:
    pool = (row.cluster, row.storage, "" if row.shared else row.node)
    return Found(
        Wish(0, source=pool),
        bootable=row.bootable,
        image_metadata=row.image_metadata,
        type_id=row.type_id,
        host=host,
        disk=source,
    )


def _require_size(new: NewVolume, least: int, what: str) -> None:
    if new.size_gib < least:
        raise Invalid(
            f"Invalid input received: Volume size '{new.size_gib}'GB cannot be smaller than "
            f"original {what} size '{least}'GB. They must be >= original size."
        )
