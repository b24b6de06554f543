"""What storages of each type can do, by Proxmox VE's storage plugins. Pure.

An LVM storage with `snapshot-as-volume-chain` (since 9.0) is a type of its own here: its volumes
are qcow2, and each snapshot is a volume.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from common.resources.volumes import SnapshotWay

LVM = "lvm"
LVM_CHAIN = "lvm-chain"
QCOW2 = "qcow2"


@dataclass(frozen=True)
class StorageType:
    """What one type can do."""

    files: bool = False
    """Whether disks are files, beside which there may be others."""
    form: str = ""
    """The format that disks are made with; empty: the storage has only one."""
    linked: bool = False
    """Whether templates can be cloned without copying."""
    snapshots: SnapshotWay = SnapshotWay.COPY
    """How snapshots of volumes are made: a copy where the storage has none, or can't copy one
    (``volume_has_feature``)."""
    snaps_vms: bool = False
    """Whether VMs with disks there can have snapshots."""
    thin: bool = False
    """Whether disks take only what is written."""
    copied: bool = False
    """Whether disks are copied to another node's storage by a migration."""
    copied_off: bool = True
    """Whether also those of a VM that does not run, if any are."""
    moves_snapshots: bool = False
    """Whether their snapshots are copied with them."""


_FILES = StorageType(
    files=True,
    form=QCOW2,
    linked=True,
    snapshots=SnapshotWay.OFFLINE,
    snaps_vms=True,
    thin=True,
)
_BLOCKS = StorageType(linked=True, snapshots=SnapshotWay.ONLINE, snaps_vms=True, thin=True)
_ZFS = StorageType(linked=True, snaps_vms=True, thin=True)
TYPES: Mapping[str, StorageType] = {
    "dir": replace(_FILES, copied=True, moves_snapshots=True),
    "nfs": _FILES,
    "cifs": _FILES,
    "glusterfs": _FILES,
    "cephfs": StorageType(files=True, thin=True),
    # As raw files, each in a subvolume: those are snapped and cloned, other formats are not.
    "btrfs": StorageType(
        files=True,
        form="raw",
        linked=True,
        snapshots=SnapshotWay.ONLINE,
        snaps_vms=True,
        thin=True,
        copied=True,
        moves_snapshots=True,
    ),
    "lvmthin": replace(_BLOCKS, copied=True),
    "rbd": _BLOCKS,
    "zfspool": replace(_ZFS, copied=True, moves_snapshots=True),
    "zfs": _ZFS,
    LVM: StorageType(copied=True),
    # A snapshot takes the whole size again, and renames the disk under any process that uses it.
    LVM_CHAIN: StorageType(
        form=QCOW2,
        snapshots=SnapshotWay.OFFLINE,
        snaps_vms=True,
        copied=True,
        copied_off=False,
    ),
}
_UNKNOWN = StorageType()


def of(kind: str) -> StorageType:
    """Return what storages of a type can do; of an unknown one, nothing."""
    return TYPES.get(kind, _UNKNOWN)
