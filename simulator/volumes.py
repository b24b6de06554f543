"""The volumes of a cluster by storage, whether or not a VM's configuration names them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from simulator.digits import is_digits
from simulator.errors import PveError
from simulator.model import Storage, Volume
from simulator.storage_kinds import KINDS

Place = tuple[str, str]

#: types of storage whose volumes are files
FILE_STORAGES = frozenset(name for name, one in KINDS.items() if one.files)

CONTENT_DIRECTORY = {
    "images": "images",
    "iso": "template/iso",
    "vztmpl": "template/cache",
    "import": "import",
    "backup": "dump",
    "snippets": "snippets",
    "rootdir": "private",
}
#: a volume that is no file
_BLOCK_NAME = re.compile(r"(?:vm|base)-([0-9]+)-[^/]+")
_DISK_NAME = re.compile(r"^(?:vm|base)-([0-9]+)-(?:disk-[0-9]+|cloudinit|state-.+|fleece-[0-9]+)")


class VolumeName(NamedTuple):
    """A parsed volume id: storage, own name, and the base volume it was cloned from."""

    storage: str
    name: str
    parent: str = ""


def parse_volid(volid: str) -> VolumeName:
    """Split a volume id. Raises Proxmox VE's 500 if there is no storage part."""
    storage, colon, rest = volid.partition(":")
    if not colon or not rest:
        raise PveError(f"unable to parse volume ID '{volid}'")
    parts = rest.split("/")
    if len(parts) == 4:
        return VolumeName(storage, "/".join(parts[2:]), "/".join(parts[:2]))
    if len(parts) == 2 and parts[0].startswith("base-"):
        return VolumeName(storage, parts[1], parts[0])
    return VolumeName(storage, rest)


def content_of(name: str) -> str:
    """Return the content type by a volume's name."""
    kind = name.partition("/")[0]
    return "images" if is_digits(kind) or _BLOCK_NAME.fullmatch(name) else kind


def owner_of(name: str) -> int:
    """Return the VMID in an image's name, or 0."""
    kind = name.partition("/")[0]
    block = _BLOCK_NAME.fullmatch(name)
    if block:
        return int(block[1])
    return int(kind) if is_digits(kind) else 0


def image_name(storage: Storage, vmid: int, stem: str, image_format: str) -> str:
    """Return the name of a VM's volume: a file in the VM's directory, or a block device."""
    if not KINDS[storage.type].files:
        return f"vm-{vmid}-{stem}"
    extension = "" if stem == "cloudinit" and image_format == "raw" else f".{image_format}"
    return f"{vmid}/vm-{vmid}-{stem}{extension}"


def format_of(name: str) -> str:
    """Return the image format by a file's name."""
    extension = name.rpartition(".")[2].lower()
    return extension if extension in {"raw", "qcow2", "vmdk", "iso", "subvol"} else "raw"


def valid_image_name(name: str, vmid: int) -> bool:
    """Return whether a bare file name may be allocated for a VM."""
    match = _DISK_NAME.match(name)
    return match is not None and int(match.group(1)) == vmid


class VolumeStore:
    """All volumes, by place (storage, and node unless shared) and by owner."""

    def __init__(self) -> None:
        self._places: dict[Place, dict[str, Volume]] = {}
        self._owned: dict[tuple[str, str, int], dict[str, Volume]] = {}
        self._children: dict[tuple[str, str, str], set[str]] = {}
        self._used: dict[Place, int] = {}

    def add(self, volume: Volume) -> Volume:
        """Add a volume, replacing one of that name."""
        place = (volume.storage, volume.node)
        if volume.name in self._places.get(place, {}):
            self.remove(self._places[place][volume.name])
        self._places.setdefault(place, {})[volume.name] = volume
        self._owned.setdefault((*place, volume.vmid), {})[volume.name] = volume
        if volume.parent:
            self._children.setdefault((*place, volume.parent), set()).add(volume.name)
        self._used[place] = self._used.get(place, 0) + volume.used
        return volume

    def remove(self, volume: Volume) -> None:
        """Remove a volume."""
        place = (volume.storage, volume.node)
        del self._places[place][volume.name]
        del self._owned[(*place, volume.vmid)][volume.name]
        if volume.parent:
            self._children[(*place, volume.parent)].discard(volume.name)
        self._used[place] -= volume.used

    def get(self, place: Place, name: str) -> Volume | None:
        """Return the volume of that name, or None."""
        return self._places.get(place, {}).get(name)

    def at(self, place: Place, vmid: int | None = None) -> Iterable[Volume]:
        """Return the volumes at a place; with a VMID the images of that VM."""
        if vmid is None:
            return list(self._places.get(place, {}).values())
        return list(self._owned.get((*place, vmid), {}).values())

    def children(self, base: Volume) -> list[str]:
        """Return the names of a base volume's linked clones."""
        return sorted(self._children.get((base.storage, base.node, base.name), ()))

    def used(self, place: Place) -> int:
        """Return the bytes that the volumes at a place use."""
        return self._used.get(place, 0)

    def free_name(self, storage: Storage, node: str, vmid: int, image_format: str) -> str:
        """Return the next free disk name of a VM; the number of an orphan is skipped."""
        place = (storage.id, "" if storage.shared else node)
        taken = {
            name.rpartition("/")[2].partition(".")[0].replace("base-", "vm-", 1)
            for name in self._owned.get((*place, vmid), {})
        }
        number = 0
        while f"vm-{vmid}-disk-{number}" in taken:
            number += 1
        return image_name(storage, vmid, f"disk-{number}", image_format)

    def all(self) -> Iterator[Volume]:
        """Yield every volume."""
        for volumes in self._places.values():
            yield from volumes.values()


def path_of(storage: Storage, name: str) -> str:
    """Return the path of a volume's file, or its device, on its node."""
    content = content_of(name)
    if not KINDS[storage.type].files:
        return f"/dev/{storage.id}/{name}"
    tail = name if content == "images" else name.partition("/")[2]
    return f"{storage.path}/{CONTENT_DIRECTORY.get(content, content)}/{tail}"
