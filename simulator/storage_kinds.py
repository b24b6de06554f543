"""What storages can do, by type: names of volumes, formats, and features.

Features are those of ``volume_has_feature`` in Proxmox VE's ``PVE/Storage/*Plugin.pm``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_Features = Mapping[str, Mapping[str, frozenset[str]]]

CURRENT, BASE, SNAP = "current", "base", "snap"
QCOW2, RAW, VMDK = "qcow2", "raw", "vmdk"


@dataclass(frozen=True)
class Kind:
    """What storages of one type can do."""

    features: _Features
    """Feature → what it is asked of (current, base, snap) → formats that have it."""
    files: bool = False
    """Whether volumes are files, in a directory of each VM."""
    formats: tuple[str, ...] = (RAW,)
    """Those that it keeps, its own one first."""
    snapshots_in_use: bool = False
    """Whether a volume that another VM's QEMU has open can be snapped: the storage does it."""
    only_last: bool = False
    """Whether a rollback is to the last snapshot only."""
    tells_base: bool = True
    """Whether the volume id of a linked clone names its base."""

    def has(self, feature: str, of: str, image_format: str) -> bool:
        """Return whether a volume of this format has a feature."""
        return image_format in self.features.get(feature, {}).get(of, ())

    def format(self, wanted: str) -> str:
        """Return the format of a copy that would have this one."""
        return wanted if wanted in self.formats else self.formats[0]


def _features(
    snapshot: Iterable[str] = (),
    clone: Iterable[str] = (BASE,),
    copy: Iterable[str] = (BASE, CURRENT),
    snap_formats: Iterable[str] = (RAW,),
    formats: Iterable[str] = (RAW,),
) -> _Features:
    every, snapped = frozenset(formats), frozenset(snap_formats)
    return {
        "snapshot": dict.fromkeys(snapshot, snapped),
        "clone": dict.fromkeys(clone, every),
        "copy": {one: snapped if one == SNAP else every for one in copy},
    }


_FILE_FORMATS = (RAW, QCOW2, VMDK)
_FILES = Kind(
    _features((CURRENT, SNAP), (BASE,), (BASE, CURRENT, SNAP), (QCOW2,), _FILE_FORMATS),
    files=True,
    formats=_FILE_FORMATS,
)
_ALL = (BASE, CURRENT, SNAP)

KINDS: Mapping[str, Kind] = {
    "dir": _FILES,
    "nfs": _FILES,
    "cifs": _FILES,
    "cephfs": _FILES,
    "lvmthin": Kind(
        _features((CURRENT,), (BASE, SNAP), _ALL), snapshots_in_use=True, tells_base=False
    ),
    "rbd": Kind(_features((CURRENT, SNAP), (BASE, SNAP), _ALL), snapshots_in_use=True),
    "zfspool": Kind(_features((CURRENT, SNAP)), snapshots_in_use=True, only_last=True),
    # Thick, with raw volumes; chains of qcow2 volumes are a preview.
    "lvm": Kind(_features(clone=())),
}


def kind(storage_type: str) -> Kind:
    """Return what storages of a type can do. Raises KeyError for an unknown one."""
    return KINDS[storage_type]
