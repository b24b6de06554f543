"""What storages can do, by type: names of volumes, formats, features, and what lists show.

By ``volume_has_feature``, ``alloc_image`` and ``list_images`` of Proxmox VE's
``PVE/Storage/*Plugin.pm``; LVM-thin and btrfs also by captures of a real server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from simulator.state.model import MIB, Storage

_Features = Mapping[str, Mapping[str, frozenset[str]]]

CURRENT, BASE, SNAP = "current", "base", "snap"
QCOW2, RAW, VMDK = "qcow2", "raw", "vmdk"
CHAIN = "snapshot-as-volume-chain"
_PERL = "at /usr/share/perl5/PVE/Storage"
_NO_ROOM = "No space left on device"


@dataclass(frozen=True)
class Texts:
    """What tools and plugins say of a volume. Filled with name, path, snap, storage, place,
    format and vmid; empty: it does not fail."""

    format: str = ""
    """Of a format that can't be allocated."""
    taken: str = "disk image '{path}' already exists"
    """Of a name that is taken."""
    bad_name: str = ""
    """Of a name that isn't the VM's."""
    no_rollback: str = ""
    no_delete: str = ""
    no_snapshot: str = ""
    """Of a missing volume or snapshot, when one is rolled back to, deleted or made."""
    full: str = "unable to create image: qemu-img: {path}: No space left on device"
    """Where there is no room, of storages that take what is written."""
    full_snapshot: str = ""
    """Of a snapshot, a rollback and a resize where there is no room: lines of the task's log, the
    last one its exit status."""
    full_rollback: str = ""
    full_resize: str = ""
    no_size: str = "volume_size_info on '{volid}' failed - no size"
    """Of a missing volume that is asked for."""


@dataclass(frozen=True)
class Kind:
    """What storages of one type can do."""

    features: _Features
    """Feature → what it is asked of (current, base, snap) → formats that have it."""
    texts: Texts
    files: bool = False
    """Whether volumes are files, in a directory of each VM."""
    subvolumes: bool = False
    """Whether a raw file lies in a subvolume of its own (btrfs)."""
    formats: tuple[str, ...] = (RAW,)
    """Those of copies, the default one first; a copy that would have another one gets that."""
    more_formats: tuple[str, ...] = ()
    """What can be allocated besides."""
    device: str = ""
    """The path of a volume that is no file."""
    unit: int = 1
    """Sizes are multiples of so many bytes."""
    thin: bool = True
    """Whether a volume takes only what is written."""
    independent: frozenset[str] = frozenset()
    """Formats whose linked clones do not depend on their base, nor name it."""
    qemu_snapshots: frozenset[str] = frozenset()
    """Formats that a running VM's own QEMU snaps."""
    closed: frozenset[str] = frozenset()
    """Formats that nobody may have open when they are snapped: the snapshot is in the file."""
    chained: bool = False
    """Whether a snapshot is a volume, and the disk a new one above it."""
    only_last: bool = False
    """Whether a rollback is to the last snapshot only."""
    frees_first: bool = False
    """Whether a rollback removes the volume before it is made of the snapshot: where that fails
    the volume is lost."""
    listed: frozenset[str] = field(default_factory=lambda: frozenset({"ctime", "used", "parent"}))
    """What lists show of volumes beside name, format, size and VMID."""
    ctime_text: bool = False
    """Whether lists show the time as text."""

    def has(self, feature: str, of: str, image_format: str) -> bool:
        """Return whether a volume of this format has a feature."""
        return image_format in self.features.get(feature, {}).get(of, ())

    def format(self, wanted: str) -> str:
        """Return the format of a copy that would have this one."""
        return wanted if wanted in self.formats else self.formats[0]

    def allocates(self, image_format: str) -> bool:
        """Return whether an empty volume of this format can be asked for."""
        known = {*self.formats, *self.more_formats}
        return image_format in known or not self.texts.format

    def size(self, wanted: int) -> int:
        """Return the size of a volume for so many bytes."""
        return -(-wanted // self.unit) * self.unit


def _features(
    snapshot: Iterable[str] = (),
    clone: Iterable[str] = (BASE,),
    copy: Iterable[str] = (BASE, CURRENT),
    snap_formats: Iterable[str] = (RAW,),
    formats: Iterable[str] = (RAW,),
    template: Iterable[str] = (CURRENT,),
) -> _Features:
    every, snapped = frozenset(formats), frozenset(snap_formats)
    return {
        "snapshot": dict.fromkeys(snapshot, snapped),
        "clone": dict.fromkeys(clone, every),
        "copy": {one: snapped if one == SNAP else every for one in copy},
        "template": dict.fromkeys(template, every),
    }


_FILE_FORMATS = (RAW, QCOW2, VMDK)
_ALL = (BASE, CURRENT, SNAP)
_QCOW2 = frozenset({QCOW2})
_FILES = Kind(
    _features((CURRENT, SNAP), (BASE,), _ALL, (QCOW2,), _FILE_FORMATS),
    Texts(
        no_rollback="command '/usr/bin/qemu-img snapshot -a {snap} {path}' failed: exit code 1",
        no_delete="command '/usr/bin/qemu-img snapshot -d {snap} {path}' failed: exit code 1",
        no_snapshot="command '/usr/bin/qemu-img snapshot -c {snap} {path}' failed: exit code 1",
        no_size="volume_size_info on '{volid}' failed - no format",
        # Of QEMU: qemu-img.c, block/qcow2.c.
        full_snapshot=f"qemu-img: Could not create snapshot '{{snap}}': -28 ({_NO_ROOM})\n"
        "command '/usr/bin/qemu-img snapshot -c {snap} {path}' failed: exit code 1",
        full_rollback=f"qemu-img: Could not apply snapshot '{{snap}}': -28 ({_NO_ROOM})\n"
        "command '/usr/bin/qemu-img snapshot -a {snap} {path}' failed: exit code 1",
        full_resize=f"qemu-img: Allocating clusters failed: {_NO_ROOM}\n"
        "command '/usr/bin/qemu-img resize '--preallocation=metadata' -f qcow2 {path} {size}' "
        "failed: exit code 1",
    ),
    files=True,
    formats=_FILE_FORMATS,
    qemu_snapshots=_QCOW2,
    closed=_QCOW2,
)
_CHAINED_FILES = replace(_FILES, closed=frozenset(), chained=True, only_last=True)
_SUBVOLUMES = "command 'btrfs subvolume {verb}' failed: exit code 1"
_BTRFS = Kind(
    {
        **_features((CURRENT, SNAP), (BASE,), _ALL, (QCOW2, RAW), _FILE_FORMATS),
        "clone": {
            BASE: frozenset(_FILE_FORMATS),
            CURRENT: frozenset({RAW}),
            SNAP: frozenset({RAW}),
        },
    },
    Texts(
        no_rollback=_SUBVOLUMES.format(verb="snapshot -- {path}@{snap} {path}.tmp"),
        no_delete=_SUBVOLUMES.format(verb="delete -- {path}@{snap}"),
        no_snapshot=_SUBVOLUMES.format(verb="snapshot -r -- {path} {path}@{snap}"),
        no_size=_FILES.texts.no_size,
        # Of btrfs-progs: cmds/subvolume.c. A sparse file grows without room.
        full_snapshot=f"ERROR: cannot snapshot '{{path}}': {_NO_ROOM}\n"
        + _SUBVOLUMES.format(verb="snapshot -r -- {path} {path}@{snap}"),
        full_rollback=f"ERROR: cannot snapshot '{{path}}@{{snap}}': {_NO_ROOM}\n"
        + _SUBVOLUMES.format(verb="snapshot -- {path}@{snap} {path}.tmp"),
    ),
    files=True,
    subvolumes=True,
    formats=(RAW,),
    more_formats=(QCOW2, VMDK),
    independent=frozenset({RAW}),
    qemu_snapshots=_QCOW2,
    closed=_QCOW2,
)
_OWN_NAME = "illegal name '{name}' - should be 'vm-{vmid}-*'"
_LV_TAKEN = (
    "lvcreate '{place}/{name}' error:   Logical Volume \"{name}\" already exists in volume group "
    '"{place}"'
)
# Of LVM: lib/metadata/thin_manip.c. A thin volume grows without room.
_THRESHOLD = "Cannot create new thin volume, free space in thin pool {place} reached threshold."
_LVMTHIN = Kind(
    _features((CURRENT,), (BASE, SNAP), _ALL),
    Texts(
        f"unsupported format '{{format}}' {_PERL}/LvmThinPlugin.pm line 102.",
        _LV_TAKEN,
        _OWN_NAME,
        "lvremove '{place}/{name}' error:   Failed to find logical volume \"{place}/{name}\"",
        "lvremove snapshot '{place}/snap_{name}_{snap}' error:   Failed to find logical volume "
        '"{place}/snap_{name}_{snap}"',
        "lvcreate snapshot '{place}/snap_{name}_{snap}' error:   Failed to find logical volume "
        '"{place}/{name}"',
        full=f"lvcreate '{{place}}/{{name}}' error:   {_THRESHOLD}",
        full_snapshot="lvcreate snapshot '{place}/snap_{name}_{snap}' error:   "
        f"{_THRESHOLD}",
        full_rollback=f"lvm rollback '{{place}}/snap_{{name}}_{{snap}}' error:   {_THRESHOLD}",
    ),
    device="/dev/{place}/{name}",
    unit=4 * MIB,
    independent=frozenset({RAW}),
    frees_first=True,
    listed=frozenset({"ctime"}),
    ctime_text=True,
)
# Thick, with raw volumes and no templates: a template's disk is left as it is.
_LVM = Kind(
    _features(clone=(), template=()),
    Texts(
        f"snapshot-as-volume-chain option need to be enabled to use qcow2 format {_PERL}"
        "/LVMPlugin.pm line 698.",
        _LV_TAKEN,
        "unable to parse lvm volume name '{name}'",
        "can't rollback, snapshot '{snap}' does not exist on '{name}'",
        "can't activate volume chain for LV '{path}'",
        "can't activate volume chain for LV '{path}'",
        no_size="can't get size of '{path}':   Failed to find logical volume \"{place}/{name}\"",
        # Of LVM: lib/metadata/lv_manip.c.
        full_resize="error resizing volume '{path}':   Insufficient free space: {extents} extents "
        "needed, but only {free} available",
    ),
    device="/dev/{place}/{name}",
    unit=4 * MIB,
    thin=False,
    listed=frozenset({"ctime"}),
    ctime_text=True,
)
_CHAINED_LVM = replace(
    _LVM,
    features=_features((CURRENT, SNAP), (), _ALL, (QCOW2,), (QCOW2, RAW), ()),
    texts=replace(
        _LVM.texts, format=f"unsupported format '{{format}}' {_PERL}/LVMPlugin.pm line 696."
    ),
    formats=(QCOW2, RAW),
    qemu_snapshots=_QCOW2,
    chained=True,
    only_last=True,
)
_ZFS = Kind(
    _features((CURRENT, SNAP)),
    Texts(
        f"unsupported format '{{format}}' {_PERL}/ZFSPoolPlugin.pm line 292.",
        "zfs error: cannot create '{place}/{name}': dataset already exists",
        _OWN_NAME,
        "can't rollback, snapshot '{snap}' does not exist on '{volid}'",
        "zfs error: could not find any snapshots to destroy; check snapshot names.",
        "zfs error: cannot open '{place}/{name}': dataset does not exist",
        "zfs error: cannot create '{place}/{name}': out of space",
        # Of OpenZFS: lib/libzfs/libzfs_util.c, for a volume with a reservation.
        "zfs error: cannot create snapshot '{place}/{name}@{snap}': out of space",
        "zfs error: cannot rollback '{place}/{name}': out of space",
        "zfs error: cannot set property for '{place}/{name}': size is greater than available "
        "space",
        "zfs error: cannot open '{place}/{name}': dataset does not exist",
    ),
    device="/dev/zvol/{place}/{name}",
    unit=MIB,
    only_last=True,
    listed=frozenset({"parent", "name"}),
)
_RBD = Kind(
    _features((CURRENT, SNAP), (BASE, SNAP), _ALL),
    Texts(
        "",
        "rbd create '{name}' error: rbd: create error: (17) File exists",
        _OWN_NAME,
        "rbd snapshot {name} to '{snap}' error: rbd: error opening image {name}: (2) No such file "
        "or directory",
        "rbd snapshot '{name}' error: rbd: error opening image {name}: (2) No such file or "
        "directory",
        "rbd snapshot '{name}' error: rbd: error opening image {name}: (2) No such file or "
        "directory",
        f"rbd create '{{name}}' error: rbd: create error: (28) {_NO_ROOM}",
        # Of Ceph: src/tools/rbd/action.
        f"rbd snapshot '{{name}}' error: rbd: failed to create snapshot: (28) {_NO_ROOM}",
        f"rbd snapshot {{name}} to '{{snap}}' error: rbd: rollback failed: (28) {_NO_ROOM}",
        f"rbd resize '{{name}}' error: rbd: resize error: (28) {_NO_ROOM}",
        "rbd error: rbd: error opening image {name}: (2) No such file or directory",
    ),
    device="rbd:{place}/{name}:conf=/etc/pve/ceph.conf:id=admin:"
    "keyring=/etc/pve/priv/ceph/{storage}.keyring",
    unit=MIB,
    qemu_snapshots=frozenset({RAW}),
    listed=frozenset({"parent", "name"}),
)

KINDS: Mapping[str, Kind] = {
    "dir": _FILES,
    "nfs": _FILES,
    "cifs": _FILES,
    "cephfs": _FILES,
    "btrfs": _BTRFS,
    "lvmthin": _LVMTHIN,
    "rbd": _RBD,
    "zfspool": _ZFS,
    "lvm": _LVM,
}
#: with the option of that name: each snapshot is a volume
CHAINS: Mapping[str, Kind] = {
    **dict.fromkeys(("dir", "nfs", "cifs"), _CHAINED_FILES),
    "lvm": _CHAINED_LVM,
}
#: options that name where the volumes of a storage without files are
_PLACES = ("vgname", "pool")


def kind(storage: Storage) -> Kind:
    """Return what a storage can do."""
    chained = storage.options.get(CHAIN) == "1"
    return (chained and CHAINS.get(storage.type)) or KINDS[storage.type]


def place_of(storage: Storage) -> str:
    """Return the volume group or pool of a storage without files."""
    return next((storage.options[key] for key in _PLACES if key in storage.options), storage.id)
