"""What new volumes are copied from: images; and which server must reach them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.errors import ImageNotFound, Invalid, ServerNotFound
from common.messages.commands import VolumeSource
from common.messages.scheduling import ImageHome, VolumeNeed
from common.resources.volumes import BackupStatus, SnapshotStatus, VolumeStatus
from conductor.rpc.volumes.volumes import NewVolume
from conductor.store.transactions import Transaction
from conductor.store.volumes import backends, backups, origins, snapshots, volumes
from conductor.volumes.backups import storages
from conductor.volumes.storage_choice import ANYWHERE, VolumePlacement

GIB = 1 << 30
#: the image property that names the type of its volumes
_TYPE_OF_IMAGE = "cinder_img_volume_type"


@dataclass(frozen=True)
class Found:
    """A new volume's source, as far as its place depends on it."""

    placement: VolumePlacement = ANYWHERE
    bootable: bool = False
    image_metadata: Mapping[str, Any] | None = None
    host: str | None = None
    """The host that must reach it."""
    volids: Mapping[str, str] = field(default_factory=dict)
    """Of an image: cluster → volume."""
    copied: VolumeSource | None = None
    """What is copied: a volume or a snapshot, on its holder's host, or a backup's archive."""
    type_id: str | None = None
    """The type, unless another one is asked for."""
    wished_type: str | None = None
    """Name or ID of the type that an image asks for, unless another one is asked for."""
    place: Any | None = None
    """The row with the place of what is copied."""

    def need(self, storage: str | None, size_gib: int) -> VolumeNeed | None:
        """Return what a server's host needs if the copy is made for it; None: it is no copy.

        ``storage``: of the type that was asked for.
        """
        at = self.place
        if at is None:
            return None
        here = at.shared and storage in (None, at.storage)
        return VolumeNeed(storage or at.storage, at.cluster, None if here else at.node, size_gib)

    home: ImageHome | None = None
    """The only node where a server's image can be copied from; None of others."""

    def source(self, cluster: str) -> VolumeSource | None:
        """Return what an agent of this cluster copies; None: nothing."""
        if self.copied is not None:
            return self.copied
        volid = self.volids.get(cluster)
        return None if volid is None else VolumeSource(volid)


def find(connection: Transaction, new: NewVolume) -> Found:
    """Return the source of a new volume. Raises NotFound of each kind, and Invalid."""
    _require_one(new)
    host = None
    if new.local_to_server is not None:
        host = _host_of(connection, new.local_to_server, new.project_id)
    if new.image_id is not None:
        return _image(connection, new, host)
    if new.snapshot_id is not None:
        return _snapshot(connection, new, host)
    if new.source_volume_id is not None:
        return _volume(connection, new, host)
    if new.backup_id is not None:
        return _backup(connection, new, host)
    return Found(host=host)


def _require_one(new: NewVolume) -> None:
    """Raise Invalid for more than one source (cinder.utils.check_exclusive_options)."""
    named = (new.backup_id, new.image_id, new.snapshot_id, new.source_volume_id)
    if sum(one is not None for one in named) > 1:
        raise Invalid(
            "Invalid input received: May specify only one of backup, imageRef, snapshot, source "
            "volume"
        )


def _snapshot(connection: Transaction, new: NewVolume, host: str | None) -> Found:
    """Return a snapshot, locked with its volume, as a source."""
    row, volume = snapshots.locked(connection, str(new.snapshot_id), new.project_id)
    if row.status != SnapshotStatus.AVAILABLE:
        raise Invalid(
            "Invalid snapshot: Originating snapshot status must be one of 'available' values; it "
            f"is {row.status}."
        )
    if volume.status in (VolumeStatus.REVERTING, VolumeStatus.DELETING):
        raise Invalid(f"Invalid volume: Volume {volume.id} is {volume.status}.")
    _require_size(new, row.size_gib, "snapshot")
    if row.snapname is None:
        place, copied = row, VolumeSource(row.volid)
    else:
        place = volume
        copied = VolumeSource(volume.volid, volume.id, volume.vmid, row.snapname)
    return _copy(volume, place, copied, host)


def _volume(connection: Transaction, new: NewVolume, host: str | None) -> Found:
    """Return a volume, locked, as a source: nobody may write to it until the copy is whole."""
    row = volumes.locked(connection, str(new.source_volume_id), new.project_id)
    if row.status != VolumeStatus.AVAILABLE:
        raise Invalid(
            f"Invalid volume: Volume {row.id} status must be available to be copied, but current "
            f"status is: {row.status}. Take a snapshot of a volume that a server has."
        )
    snapshots.require_alone(connection, row)
    _require_size(new, row.size_gib, "source volume")
    return _copy(row, row, VolumeSource(row.volid), host)


def _backup(connection: Transaction, new: NewVolume, host: str | None) -> Found:
    """Return a backup, locked, as a source; of the type of its volume, if that is there."""
    row = backups.locked(connection, str(new.backup_id), new.project_id)
    if row.status not in (BackupStatus.AVAILABLE, BackupStatus.RESTORING):
        raise Invalid("Invalid backup: Backup status must be available or restoring")
    _require_size(new, row.size_gib, "backup")
    volume = volumes.get(connection, row.volume_id)
    return Found(
        VolumePlacement(
            0, hosts=frozenset(storages.hosts(backends.read(connection, "backup"), row))
        ),
        bootable=row.bootable,
        image_metadata=row.image_metadata,
        host=host,
        copied=VolumeSource(row.archive, archive=True),
        type_id=None if volume is None else volume.type_id,
    )


def _copy(volume: Any, place: Any, copied: VolumeSource, host: str | None) -> Found:
    return Found(
        VolumePlacement(0, storage=place.storage, on=place.host),
        bootable=volume.bootable,
        image_metadata=volume.image_metadata,
        host=host,
        copied=copied,
        type_id=volume.type_id,
        place=place,
    )


def place_of(connection: Transaction, snapshot_id: str) -> Any | None:
    """Return the row that says where a snapshot is: its own, or its volume's; None: it is gone."""
    row = snapshots.get(connection, snapshot_id)
    if row is None or row.snapname is None:
        return row
    return volumes.get(connection, row.volume_id)


def size_of(connection: Transaction, snapshot_id: str | None) -> int:
    """Return the size of a snapshot, GiB; 0 where there is none."""
    row = None if snapshot_id is None else snapshots.get(connection, snapshot_id)
    return 0 if row is None else int(row.size_gib)


def _require_size(new: NewVolume, has_gib: int, what: str) -> None:
    if new.size_gib < has_gib:
        raise Invalid(
            f"Invalid input received: Volume size '{new.size_gib}'GB cannot be smaller than the "
            f"{what} size {has_gib}GB. They must be >= original {what} size."
        )


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
        raise Invalid(f"Image {image_id} is an ISO image: no volume can be created from it.")
    if "block_device_mapping" in found.properties:
        raise Invalid(
            f"Image {image_id} has no data: it lists snapshots of volumes. Make the volume of one "
            "of these."
        )
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
    # As in Cinder: a property can't take the name of what the image is.
    kept = {
        **found.properties,
        "image_id": found.id,
        **({"image_name": found.name} if found.name else {}),
        **({"checksum": found.md5} if found.md5 else {}),
        "container_format": found.container_format,
        "disk_format": found.disk_format,
        "min_disk": str(found.min_disk_gib),
        "min_ram": str(found.min_ram_mib),
        "size": str(found.size_bytes),
    }
    home = home_of(found.home)
    at = None if home is None else (home.cluster, home.node)
    return Found(
        VolumePlacement(0, clusters=frozenset(volids), at=at),
        bootable=True,
        image_metadata=kept,
        host=host,
        wished_type=found.properties.get(_TYPE_OF_IMAGE),
        volids=volids,
        home=home,
    )


def home_of(home: Mapping[str, Any] | None) -> ImageHome | None:
    """Return the only node where a server's image, which is there, can be copied from.

    Proxmox VE imports a template's disk on the template's node alone, whatever its storage.
    """
    return None if home is None else dataclasses.replace(ImageHome(**home), shared=False)
