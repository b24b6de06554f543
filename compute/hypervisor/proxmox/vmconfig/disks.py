"""The ways to a disk: which one a build takes, and the values for Proxmox VE. Pure."""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from common.guest.hardware import DISK_BUSES, Hardware
from common.guest.rescue import CD_BUSES, rescue_bus
from common.messages.commands import Build, Image
from common.resources.local_disks import LocalDisk
from compute.hypervisor.proxmox.vmconfig import storage_types

#: where holders have their volume, and a VM that boots from one; of others by the root disk's bus
ROOT_DISK = "scsi0"
ROOT_SLOTS = {bus: f"{bus}0" for bus in DISK_BUSES}
#: options of a drive that bound it
_LIMITS = re.compile(r"(?:iops|mbps)(?:_rd|_wr)?=")
#: where a rescued VM has the disk that it runs from
RESCUE_DISK = "scsi15"
#: where a VM has the ISO image that it was made from
INSTALL_CD = "ide0"
#: slot of the ISO image that a VM is rescued from, by bus; ide1 and ide3 don't exist with q35
RESCUE_CDS = {"sata": "sata5", "ide": INSTALL_CD, "scsi": "scsi14"}
CONFIG_DRIVE = "ide2"
BOOT = "boot"

_OWNER = re.compile(r"[:/](?:vm|base|subvol)-([0-9]+)-[^/]*$")
_DISK_KEY = re.compile(r"(?:scsi|virtio|ide|sata|efidisk|tpmstate|unused)[0-9]+|vmstate")
_GUEST_DISK = re.compile(r"(?:scsi|virtio|ide|sata)[0-9]+")
_SIZE = re.compile(r"(?:^|,)size=([0-9]+)([KMGT]?)")
_SERIAL = re.compile(r"(?:^|,)serial=([^,]+)")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Way(enum.StrEnum):
    """How a server gets its root disk."""

    LINKED_CLONE = "linked_clone"
    FULL_CLONE = "full_clone"
    IMPORT_FROM = "import_from"
    BLANK = "blank"
    """An empty disk, and the image as a CD."""
    VOLUME = "volume"
    """None of its own: a volume that is there."""


CLONES = frozenset({Way.LINKED_CLONE, Way.FULL_CLONE})


def way(build: Build, storage: str, storage_type: str, *, linked: bool) -> Way:
    """Return the cheapest way that template, storage and operator (``linked``) allow."""
    if build.image is not None and build.image.cd:
        return Way.BLANK
    only_template = build.image is not None and build.image.template_only
    linkable = storage_types.of(storage_type).linked
    if build.template is None or not (linkable or only_template):
        return Way.IMPORT_FROM
    if not linkable:
        return Way.FULL_CLONE
    same = build.template.storage == storage
    return Way.LINKED_CLONE if same and linked else Way.FULL_CLONE


def links(linked_clones: str, *, shared: bool) -> bool:
    """Return whether disks on a storage are linked clones, by the option of that name."""
    return linked_clones == "always" or (linked_clones == "shared" and shared)


def imported(storage: str, storage_type: str, volid: str) -> str:
    """Return the value of a disk made from an import volume. Its size must be 0, to grow later."""
    return f"{storage}:0,import-from={volid}{form(storage_type)}"


def made_of(image: Image, storage: str, storage_type: str, gib: int) -> str:
    """Return the value of a root disk: made of the image, or blank if the image is a CD."""
    if image.cd:
        return blank(storage, storage_type, gib)
    return imported(storage, storage_type, image.volid)


def blank(storage: str, storage_type: str, gib: int) -> str:
    """Return the value of an empty disk of this size."""
    return f"{storage}:{gib}{form(storage_type)}"


def local(
    disk: LocalDisk, storage: str, storage_type: str, limits: Mapping[str, str] | None = None
) -> str:
    """Return the value of an empty disk beside the root disk, with these bounds.

    Proxmox VE takes sizes in GiB with decimals; a number of MiB has ten of them at most. Backups
    of the VM leave it out.
    """
    gib = f"{disk.size_mib / 1024:.10f}".rstrip("0").rstrip(".")
    options = f"backup=0,discard=on,iothread=1,serial={disk.serial}"
    return bounded(f"{storage}:{gib}{form(storage_type)},{options}", limits or {})


def local_slot(disk: LocalDisk) -> str:
    """Return where a VM has a disk beside its root disk."""
    return f"scsi{disk.slot}"


def serial(value: str) -> str:
    """Return the serial number in a disk's value, empty if it has none."""
    match = _SERIAL.search(value)
    return match[1] if match else ""


def form_of_copy(storage_type: str) -> dict[str, str]:
    """Return the parameters of a full clone that choose the format of its disks."""
    chosen = storage_types.of(storage_type).form
    return {"format": chosen} if chosen else {}


def form(storage_type: str) -> str:
    """Return the option of a new disk that chooses its format, with its comma; may be empty."""
    return "".join(f",{name}={value}" for name, value in form_of_copy(storage_type).items())


def owner(volid: str) -> int | None:
    """Return the VMID in a disk's name; None: it is no disk of a VM."""
    found = _OWNER.search(volid)
    return int(found[1]) if found is not None else None


def cd(volid: str) -> str:
    """Return the value of a drive with a CD."""
    return f"{volid},media=cdrom"


def boot_order(image: Image | None, slot: str = ROOT_DISK) -> str:
    """Return the boot order of a VM made of an image: firmware leaves out an empty disk.

    ``slot``: where its root disk is.
    """
    return f"order={slot};{install_cd(slot)}" if image and image.cd else f"order={slot}"


def install_cd(slot: str) -> str:
    """Return where a VM with that root disk has the ISO image that it was made from."""
    return INSTALL_CD if slot != INSTALL_CD else "sata4"


def rescue_slot(image: Image) -> str:
    """Return where a VM has what it is rescued from."""
    if not image.cd:
        return RESCUE_DISK
    return RESCUE_CDS.get(rescue_bus(image.properties), RESCUE_CDS[CD_BUSES[0]])


def root_slot(config: Mapping[str, Any]) -> str:
    """Return where a VM has its root disk: what it boots from, or (rescued) the first there."""
    order = str(config.get(BOOT, "")).removeprefix("order=").split(";")
    named = (one for one in order if one in ROOT_SLOTS.values() and not _is_cd(config.get(one)))
    there = (one for one in ROOT_SLOTS.values() if one in config and not _is_cd(config[one]))
    return next(named, None) or next(there, ROOT_DISK)


def root(config: Mapping[str, Any]) -> str:
    """Return the value of the root disk; empty: it has none where ours are."""
    return str(config.get(root_slot(config), ""))


def _is_cd(value: Any) -> bool:
    return "media=cdrom" in str(value)


def root_slot_of(found: Hardware, *, from_volume: bool = False) -> str:
    """Return where a new VM gets its root disk; a volume's bus is its own."""
    return ROOT_DISK if from_volume else ROOT_SLOTS[found.disk_bus]


def bounded(value: str, limits: Mapping[str, str]) -> str:
    """Return a drive's value with these bounds, and no others."""
    parts = [part for part in value.split(",") if not _LIMITS.match(part)]
    return ",".join([*parts, *(f"{name}={bound}" for name, bound in sorted(limits.items()))])


def limits_of(value: str) -> dict[str, str]:
    """Return the bounds in a drive's value."""
    parts = (part.partition("=") for part in value.split(",") if _LIMITS.match(part))
    return {name: bound for name, _, bound in parts}


def root_as(config: Mapping[str, Any], slot: str, limits: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that give a VM its root disk in a slot, with these bounds.

    Proxmox VE moves a volume from one slot to another in one call: a deleted one becomes unused,
    and is no longer unused once it is named again (``write_vm_config`` of qemu-server).
    """
    there = root_slot(config)
    value = str(config.get(there, ""))
    if not value:
        return {}
    wanted = bounded(value, limits)
    if there != slot:
        return {slot: wanted, "delete": there}
    return {} if wanted == value else {slot: wanted}


def size_bytes(value: str) -> int:
    """Return the size in a disk's value, 0 if it has none."""
    match = _SIZE.search(value)
    return int(match[1]) * _UNITS[match[2]] if match else 0


def bytes_of(config: Mapping[str, Any], volids: Collection[str]) -> int:
    """Return the size that these volumes have together, by a configuration."""
    values = [str(value) for value in config.values()]
    return sum(size_bytes(value) for value in values if value.split(",", 1)[0] in volids)


def root_bytes(config: Mapping[str, Any]) -> int:
    """Return the size of a configuration's root disk, 0 if it has none."""
    return size_bytes(root(config))


def drives(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield slot and volume of each disk that the guest has; a CD is none."""
    for key, value in sorted(config.items()):
        volid = str(value).split(",", 1)[0]
        if _GUEST_DISK.fullmatch(key) and "media=cdrom" not in str(value) and ":" in volid:
            yield key, volid


def file_of(volid: str) -> str:
    """Return what is the same for all names of a volume: a linked clone's may name its base."""
    storage, _, name = volid.partition(":")
    return f"{storage}:{name.rpartition('/')[2]}"


def unused(config: Mapping[str, Any]) -> list[str]:
    """Return a VM's unused volumes, which its guest doesn't see."""
    return [
        str(value).split(",", 1)[0]
        for key, value in sorted(config.items())
        if key.startswith("unused")
    ]


def lacks_root(config: Mapping[str, Any], *, adopted: bool) -> bool:
    """Return whether a VM has no disk to boot from; of an adopted one any disk will do."""
    slots = {slot for slot, _ in drives(config)}
    return not slots if adopted else not slots & set(ROOT_SLOTS.values())


def volumes(config: Mapping[str, Any], vmid: int) -> frozenset[str]:
    """Return the volumes in a configuration that have this VMID in their name."""
    own = re.compile(rf"(?:^|[/:])(?:vm|base)-{vmid}-[^/]*$")
    return frozenset(volid for volid in _references(config) if own.search(volid))


def storages(config: Mapping[str, Any]) -> list[str]:
    """Return the storages of a configuration's disks, without CDs, each once."""
    disks = (
        str(value).split(",", 1)[0]
        for key, value in sorted(config.items())
        if _DISK_KEY.fullmatch(key) and "media=cdrom" not in str(value)
    )
    return list(dict.fromkeys(volid.split(":", 1)[0] for volid in disks if ":" in volid))


def _references(config: Mapping[str, Any]) -> Iterator[str]:
    for key, value in config.items():
        if _DISK_KEY.fullmatch(key):
            volid = str(value).split(",", 1)[0]
            if ":" in volid:
                yield volid
