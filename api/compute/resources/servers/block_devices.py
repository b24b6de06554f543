"""The block devices of a `POST /servers`, checked as Nova does.

Facts from nova/block_device.py and nova/compute/api.py; so are the words of the errors. Both
syntaxes become ``Device``s. What needs the database is checked in ``boot_sources``, and by the
conductor. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from oslo_utils import strutils

from api.compute.schemas.types import MAX_INT
from common import ids
from common.errors import Invalid, NotSupported
from common.guest.hardware import DISK_BUSES
from common.resources import local_disks
from common.resources.local_disks import LocalDisk, Wanted

LEGACY, V2 = "block_device_mapping", "block_device_mapping_v2"
#: the name of the root disk, where the older syntax names it
_ROOT_NAME = "vda"
_SWAP = "swap"
#: buses that give a plugged disk a controller of its own (virtio-scsi)
_BUSES_BESIDE = frozenset({"scsi", "virtio"})
#: nova's default of max_local_block_devices
_MOST_LOCAL = 3
_TOO_MANY = "You specified more local devices than the limit allows"


def invalid(details: str) -> Invalid:
    """Return the error of a wrong mapping."""
    return Invalid(f"Block Device Mapping is Invalid: {details}")


@dataclass(frozen=True)
class Device:
    """One block device that is asked for; None: nothing is said."""

    source: str
    """``image``, ``volume``, ``snapshot`` or ``blank``."""
    on_volume: bool
    """Whether it is a volume, or a local disk."""
    uuid: str | None = None
    """The source's."""
    size_gib: int = 0
    boot_index: int = -1
    """Negative: nothing is booted from it."""
    delete_on_termination: bool = False
    tag: str | None = None
    volume_type: str | None = None
    """Name or id."""
    swap: bool = False
    """For a blank local disk."""
    disk_bus: str | None = None
    """One of ``hardware.DISK_BUSES``; it counts for a root disk that is no volume."""

    @property
    def boots(self) -> bool:
        """Return whether it is the root disk."""
        return self.boot_index == 0


def devices_of(asked: Mapping[str, Any]) -> tuple[Device, ...]:
    """Return the devices that a server's body names; none: its image is all. Raises Invalid."""
    legacy, new = asked.get(LEGACY), asked.get(V2)
    if legacy and new:
        raise Invalid(
            "Using different block_device_mapping syntaxes is not allowed in the same request."
        )
    image_id = asked.get("imageRef") or None
    if legacy:
        found = _legacy(legacy, image_id)
    elif new:
        found = [_device(one, image_id) for one in new if not one.get("no_device")]
    else:
        return ()
    check_devices(found)
    return tuple(found)


def check_devices(found: Sequence[Device]) -> None:
    """Raise Invalid unless a server can have all these devices, and boots from one of them."""
    _check_sequence(found)
    for one in found:
        _check_size(one)
    if sum(not one.on_volume for one in found) > _MOST_LOCAL:
        raise invalid(_TOO_MANY)


def local_disks_of(
    devices: Sequence[Device], ephemeral_gib: int, swap_mib: int
) -> tuple[LocalDisk, ...]:
    """Return the local disks in addition to the root disk, by a flavor's sizes.

    Raises Invalid for more disks than the sizes allow.
    """
    blank = [one for one in devices if one.source == "blank" and not one.on_volume]
    ephemeral = sum(one.size_gib or ephemeral_gib for one in blank if not one.swap)
    if ephemeral > ephemeral_gib:
        raise Invalid(
            "Ephemeral disks requested are larger than the instance type allows. If no size is "
            "given in one block device mapping, flavor ephemeral size will be used."
        )
    swaps = [one.size_gib for one in blank if one.swap]
    if len(swaps) > 1:
        raise invalid("More than one swap drive requested.")
    if swaps and swaps[0] > swap_mib:
        raise Invalid("Swap drive requested is larger than instance type allows.")
    if _local(devices, blank, ephemeral_gib, swap_mib) > _MOST_LOCAL:
        raise invalid(_TOO_MANY)
    # What is called a size in GiB is one in MiB of a swap disk, as in Nova.
    asked = [
        Wanted(one.swap, one.size_gib if one.swap else one.size_gib * 1024, one.tag)
        for one in blank
    ]
    return local_disks.of_server(ephemeral_gib, swap_mib, asked)


def _local(
    devices: Sequence[Device], blank: Sequence[Device], ephemeral_gib: int, swap_mib: int
) -> int:
    """Return how many local disks a server gets: those named, and those of its flavor."""
    ephemeral = bool(ephemeral_gib) and all(one.swap for one in blank)
    swap = bool(swap_mib) and not any(one.swap for one in blank)
    return sum(not one.on_volume for one in devices) + ephemeral + swap


# --- block_device_mapping_v2


def _device(asked: Mapping[str, Any], image_id: str | None) -> Device:
    source, uuid = asked.get("source_type"), asked.get("uuid")
    if source is None:
        raise invalid("Some required fields are missing")
    destination = asked.get("destination_type")
    on_volume = destination == "volume" or (destination is None and source in _OF_VOLUMES)
    volume_type = asked.get("volume_type") or None
    index = asked.get("boot_index")
    boot_index = -1 if index is None else _index(index)
    if source == "blank" and uuid:
        raise invalid("Invalid device UUID.")
    if source != "blank" and not uuid:
        raise invalid("Missing device UUID.")
    if source == "image" and not on_volume and not (image_id and boot_index == 0):
        raise invalid("Mapping image to local is not supported.")
    if source == "image" and not on_volume and not _is(str(uuid), str(image_id)):
        raise invalid("it names another image than imageRef.")
    if source in _OF_VOLUMES and not on_volume:
        raise invalid(f"Mapping {source} to local is not supported.")
    if volume_type and not on_volume:
        raise invalid("Specifying a volume_type with destination_type=local is not supported.")
    if volume_type and source == "volume":
        raise invalid("Specifying volume type to existing volume is not supported.")
    of_image = source == "image" and not on_volume
    _check_hardware(asked, image_id if on_volume else None)
    bus = _bus(asked, root=of_image)
    return Device(
        source=source,
        on_volume=on_volume,
        uuid=uuid,
        size_gib=_size(asked),
        boot_index=boot_index,
        delete_on_termination=_truth(asked),
        tag=asked.get("tag"),
        volume_type=volume_type,
        swap=asked.get("guest_format") == _SWAP,
        disk_bus=bus,
    )


def _is(uuid: str, other: str) -> bool:
    return ids.is_uuid(uuid) and ids.is_uuid(other) and UUID(uuid) == UUID(other)


#: sources that are never on a local disk
_OF_VOLUMES = frozenset({"volume", "snapshot"})


def _check_hardware(asked: Mapping[str, Any], image_id: str | None) -> None:
    """Raise Invalid for what a device can't be; ``image_id``: that of a local root disk."""
    name = str(asked.get("device_name") or "").removeprefix("/dev/")
    if image_id and name == _ROOT_NAME:
        raise Invalid(
            f"The volume cannot be assigned the same device name as the root device {_ROOT_NAME}"
        )
    kind = asked.get("device_type")
    if kind not in (None, "", "disk"):
        raise NotSupported(f"A block device of type {kind} is not supported: disks are made.")


def _bus(asked: Mapping[str, Any], *, root: bool) -> str | None:
    """Return the bus that is named; ``root``: for a root disk that is no volume.

    Raises Invalid, with Nova's message, for a bus that Proxmox VE doesn't have; NotSupported for a
    bus to which a disk can't be plugged.
    """
    bus = asked.get("disk_bus") or None
    if bus is not None and bus not in DISK_BUSES:
        raise Invalid(
            f"Block Device Mapping is invalid: The provided disk bus {bus} is not valid."
        )
    if bus is not None and not root and bus not in _BUSES_BESIDE:
        raise NotSupported(
            f"A volume, or a local disk beside the root disk, can't be on the bus {bus}: it is on "
            "SCSI (virtio-scsi). Leave out disk_bus."
        )
    return bus


def _check_sequence(found: Sequence[Device]) -> None:
    boots = sorted(one.boot_index for one in found if one.boot_index >= 0)
    if not boots or boots != list(range(len(boots))):
        raise invalid(
            "Boot sequence for the instance and image/block device mapping combination is not "
            "valid."
        )


def _check_size(one: Device) -> None:
    if not one.on_volume or one.size_gib:
        return
    if one.source == "image":
        raise Invalid(
            "Images with destination_type 'volume' need to have a non-zero size specified"
        )
    if one.source == "blank":
        raise Invalid("Blank volumes (source: 'blank', dest: 'volume') need to have non-zero size")


def _size(asked: Mapping[str, Any]) -> int:
    return int(asked.get("volume_size") or 0)


def _index(value: Any) -> int:
    """Return a number that the schema lets pass as text of any length. Raises Invalid."""
    if len(str(value)) > len(str(MAX_INT)):
        raise invalid("Boot index is invalid.")
    return int(value)


def _truth(asked: Mapping[str, Any]) -> bool:
    return bool(strutils.bool_from_string(asked.get("delete_on_termination", False)))


# --- block_device_mapping


def _legacy(asked: Sequence[Mapping[str, Any]], image_id: str | None) -> list[Device]:
    """Return the devices of the older syntax, where the device name identifies the root disk.

    The image is the root disk unless a volume has the root disk's name.
    """
    found = [_of_legacy(one) for one in asked if not one.get("no_device")]
    if image_id and not any(one.boots for one in found):
        found.insert(0, Device("image", False, image_id, boot_index=0, delete_on_termination=True))
    return found


def _of_legacy(asked: Mapping[str, Any]) -> Device:
    virtual, size = str(asked.get("virtual_name") or ""), _size(asked)
    if virtual == _SWAP or virtual.startswith("ephemeral"):
        return Device("blank", False, size_gib=size, swap=virtual == _SWAP)
    source = "snapshot" if asked.get("snapshot_id") else "volume"
    uuid = asked.get(f"{source}_id")
    if not uuid:
        raise invalid("Unrecognized legacy format.")
    name = str(asked.get("device_name") or "").removeprefix("/dev/")
    return Device(
        source,
        True,
        uuid,
        size_gib=size,
        boot_index=0 if name == _ROOT_NAME else -1,
        delete_on_termination=_truth(asked),
    )
