"""Ways to a disk, pure: which one a build takes, and the values it asks Proxmox VE for."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from typing import Any

from common.messages.commands import Build

ROOT_DISK = "scsi0"
CONFIG_DRIVE = "ide2"

#: storages that keep disks as files, where the format is a choice
FILE_TYPES = frozenset({"dir", "nfs", "cifs", "cephfs", "glusterfs", "btrfs"})
#: storages whose templates can be cloned without copying (files as qcow2)
LINKED_TYPES = frozenset({"dir", "nfs", "cifs", "glusterfs", "lvmthin", "zfspool", "zfs", "rbd"})
#: storages whose disks (files as qcow2) can have snapshots
SNAPSHOT_TYPES = LINKED_TYPES | {"btrfs"}
#: storages that take only what is written
THIN_TYPES = LINKED_TYPES | {"cephfs", "btrfs"}

_DISK_KEY = re.compile(r"(?:scsi|virtio|ide|sata|efidisk|tpmstate|unused)\d+")
_SIZE = re.compile(r"(?:^|,)size=(\d+)([KMGT]?)")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Way(enum.StrEnum):
    """How a server gets its root disk."""

    LINKED_CLONE = "linked_clone"
    FULL_CLONE = "full_clone"
    IMPORT_FROM = "import_from"


def way(build: Build, storage: str, storage_type: str, *, linked: bool) -> Way:
    """The cheapest way that the template, the storage and the operator (``linked``) allow."""
    if build.template is None or storage_type not in LINKED_TYPES:
        return Way.IMPORT_FROM
    same = build.template.storage == storage
    return Way.LINKED_CLONE if same and linked else Way.FULL_CLONE


def links(linked_clones: str, *, shared: bool) -> bool:
    """Return whether disks on a storage are linked clones, by the option of that name."""
    return linked_clones == "always" or (linked_clones == "shared" and shared)


def imported(storage: str, storage_type: str, volid: str) -> str:
    """The value of a disk made from an import volume. The size must be 0 and grows afterwards."""
    fmt = ",format=qcow2" if storage_type in LINKED_TYPES & FILE_TYPES else ""
    return f"{storage}:0,import-from={volid}{fmt}"


def size_bytes(value: str) -> int:
    """Return the size in a disk's value, 0 when it names none."""
    match = _SIZE.search(value)
    return int(match[1]) * _UNITS[match[2]] if match else 0


def root_bytes(config: Mapping[str, Any]) -> int:
    """Return the size of a configuration's root disk, 0 when it names none."""
    return size_bytes(str(config.get(ROOT_DISK, "")))


def volumes(config: Mapping[str, Any], vmid: int) -> frozenset[str]:
    """Volumes that a configuration references and that carry this VMID in their name."""
    own = re.compile(rf"(?:^|[/:])(?:vm|base)-{vmid}-[^/]*$")
    return frozenset(volid for volid in _references(config) if own.search(volid))


def _references(config: Mapping[str, Any]) -> Iterator[str]:
    for key, value in config.items():
        if _DISK_KEY.fullmatch(key):
            volid = str(value).split(",", 1)[0]
            if ":" in volid:
                yield volid
