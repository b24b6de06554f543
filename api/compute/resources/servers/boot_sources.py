"""The boot source of a create: an image, an existing volume, or a new volume."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from api.compute.resources.servers import image_devices
from api.compute.resources.servers.block_devices import Device, check_devices, invalid
from common import ids
from common.errors import ImageNotFound, Invalid
from common.guest.hardware import with_root_bus
from conductor.rpc.servers.servers import BlockDevice
from db.reads.images import images
from db.reads.images.images import Image
from db.reads.servers.flavors import Flavor
from db.reads.volumes import snapshots, volumes
from db.reads.volumes.volumes import Volume, VolumeType

_GIB = 1024**3
#: metadata about a volume's image that are not image properties (nova's VIM_IMAGE_ATTRIBUTES)
_OF_IMAGE = frozenset(
    {"image_id", "image_name", "size", "checksum"}
    | {"container_format", "disk_format", "min_ram", "min_disk"}
)


#: sources of a root disk that are volumes, or were one
_OF_VOLUMES = ("volume", "snapshot")


@dataclass(frozen=True)
class Sources:
    """What a create boots from."""

    devices: tuple[Device, ...]
    image: Image | None = None
    volume: Volume | None = None
    """The root volume, if it exists; for a root disk made of a snapshot, the snapshot's volume."""
    types: Sequence[VolumeType] = ()
    """Those that may be used, where one is named."""

    @property
    def root(self) -> Device | None:
        """Return the root disk where it is named as a device."""
        return root_of(self.devices)

    @property
    def from_volume(self) -> bool:
        """Return whether the root disk is a volume."""
        return self.root is not None and self.root.on_volume

    @property
    def local_image(self) -> Image | None:
        """Return the image of a root disk that is no volume."""
        return None if self.from_volume else self.image

    @property
    def properties(self) -> dict[str, str]:
        """Return the image properties that decide the guest's hardware."""
        found: Mapping[str, Any] = {}
        if self.image is not None:
            found = {
                name: value
                for name, value in self.image.properties.items()
                if name not in image_devices.OWN
            }
        elif self.volume is not None:
            kept = self.volume.image_metadata or {}
            found = {name: value for name, value in kept.items() if name not in _OF_IMAGE}
        named = self.root.disk_bus if self.root is not None and not self.from_volume else None
        return with_root_bus(found, named)

    @property
    def least_memory_mib(self) -> int:
        """Return the memory that the image needs."""
        if self.image is not None:
            return self.image.min_ram_mib
        return volumes.least_memory_mib(self.volume.image_metadata if self.volume else None)

    @property
    def disk_tag(self) -> str | None:
        """Return the name of a root disk that is no volume."""
        return None if self.root is None or self.from_volume else self.root.tag


def root_of(devices: Sequence[Device]) -> Device | None:
    """Return the root disk where it is named as a device."""
    return next((one for one in devices if one.boots), None)


def image_of(asked: Mapping[str, Any], devices: Sequence[Device]) -> str | None:
    """Return the image that is named for the root disk, by ``imageRef`` or by its device.

    None: there is none, and a volume is the root disk. Raises Invalid.
    """
    named = asked.get("imageRef") or None
    root = root_of(devices)
    if named is None and root is not None:
        named = root.uuid if root.source == "image" else None
        if named is not None and not ids.is_uuid(named):
            raise invalid(f"failed to get image {named}.")
    if named is None and root is None:
        raise Invalid("Missing imageRef attribute")
    if named is not None and not ids.is_uuid(named):
        raise Invalid("Invalid imageRef provided.")
    return None if named is None else str(uuid.UUID(named))


@dataclass(frozen=True)
class Found:
    """The image, volume and volume types that a create names, as read from the database."""

    image: Image | None = None
    volume: Volume | None = None
    """That of the root disk, or of the snapshot that it is made of."""
    types: Sequence[VolumeType] = ()


def read(
    connection: sa.Connection,
    devices: Sequence[Device],
    image_id: str | None,
    project_id: str | None,
) -> Found:
    """Read the image, volume and types that a create names.

    ``project_id``: their owner; None: an administrator may name those of any project.
    """
    named = any(one.volume_type for one in devices)
    types = volumes.types(connection, project_id) if named else ()
    # An image that is named decides alone, and whether the volume is bootable doesn't matter then.
    if image_id is not None:
        return Found(images.get(connection, image_id, project_id), types=types)
    root = root_of(devices)
    volume = None if root is None else _root_volume(connection, root, project_id)
    return Found(volume=volume, types=types)


def _root_volume(connection: sa.Connection, root: Device, project_id: str | None) -> Volume | None:
    """Return the volume that servers boot from, or whose snapshot they boot from."""
    if not ids.is_uuid(str(root.uuid)):
        return None
    named = str(uuid.UUID(root.uuid))
    if root.source == "volume":
        return volumes.get(connection, named, project_id)
    snapshot = snapshots.get(connection, named, project_id)
    # The volume may be another project's by now.
    return None if snapshot is None else volumes.get(connection, snapshot.volume_id, None)


def sources(devices: tuple[Device, ...], image_id: str | None, found: Found) -> Sources:
    """Return what a create boots from. Raises Invalid and ImageNotFound for what isn't there, as
    ``get_bdm_image_metadata`` of nova/block_device.py does."""
    root, image = root_of(devices), found.image
    if image_id is not None and image is None:
        if root is not None and root.on_volume and root.source == "image":
            raise invalid(f"failed to get image {image_id}.")
        raise ImageNotFound("Can not find requested image")
    if image is not None:
        listed = image_devices.of_image(image.properties)
        if listed:
            devices = image_devices.merged(listed, devices)
            check_devices(devices)
    elif root is not None and root.source in _OF_VOLUMES:
        if found.volume is None:
            raise invalid(f"failed to get {root.source} {root.uuid}.")
        if not found.volume.bootable:
            raise Invalid(f"Block Device {found.volume.id} is not bootable.")
    return Sources(devices, image, found.volume, found.types)


def check(sources: Sources, flavor: Flavor) -> None:
    """Raise Invalid unless flavor and root volume take the image."""
    image, root = sources.image, sources.root
    if image is not None and image.status != "active":
        raise Invalid(f"Image {image.id} is not active.")
    if image is not None and _lists_server(image):
        raise Invalid(f"Image {image.id} has no data: it only lists a shelved server.")
    if not sources.from_volume or root is None:
        return
    if sources.least_memory_mib > flavor.memory_mib:
        raise Invalid("Flavor's memory is too small for requested image.")
    if image is not None and root.size_gib and image.min_disk_gib > root.size_gib:
        raise Invalid(too_small(root.size_gib, image.min_disk_gib))


def no_data(image: Image) -> str | None:
    """Return why no disk can be made of an active image; None: it has data. Raises Invalid."""
    what = "a shelved server" if _lists_server(image) else None
    if image_devices.of_image(image.properties):
        what = "snapshots of volumes"
    return what and f"Image {image.id} has no data: it only lists {what}."


def _lists_server(image: Image) -> bool:
    return image.server_uuid is not None and image.home is None


def too_small(has_gib: int, needed_gib: int) -> str:
    """Return why a volume can't have an image, in Nova's words."""
    return (
        "Volume is smaller than the minimum size specified in image metadata. Volume size "
        f"is {has_gib * _GIB} bytes, minimum size is {needed_gib * _GIB} bytes."
    )


def volumes_of(sources: Sources) -> tuple[BlockDevice, ...]:
    """Return the volumes that the servers get. Raises Invalid for a type that is not there."""
    return tuple(_volume(one, sources.types) for one in sources.devices if one.on_volume)


def _volume(device: Device, types: Sequence[VolumeType]) -> BlockDevice:
    source = device.uuid
    if source is not None:
        if not ids.is_uuid(source):
            raise invalid(f"failed to get {device.source} {source}.")
        source = str(uuid.UUID(source))
    return BlockDevice(
        volume_id=source if device.source == "volume" else None,
        size_gib=device.size_gib,
        type_id=_type(device.volume_type, types),
        image_id=source if device.source == "image" else None,
        snapshot_id=source if device.source == "snapshot" else None,
        boot=device.boots,
        delete_on_termination=device.delete_on_termination,
        tag=device.tag,
    )


def _type(wanted: str | None, types: Sequence[VolumeType]) -> str | None:
    if wanted is None:
        return None
    found = next((one.id for one in types if wanted in (one.id, one.name)), None)
    if found is None:
        raise Invalid(f"Volume type {wanted} could not be found.")
    return found
