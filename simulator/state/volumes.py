"""The volumes of a cluster by storage, whether or not a VM's configuration names them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from simulator.digits import is_digits
from simulator.errors import PveError
from simulator.state.model import Storage, Volume
from simulator.state.storage_kinds import QCOW2, RAW, kind, place_of

Place = tuple[str, str]

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
#: the file names that a file storage takes
_FILE_NAME = re.compile(r"[^/\s]+\.(raw|qcow2|vmdk)")
_ANY_BLOCK_NAME = re.compile(r"vm-[0-9]+-\S+")


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
    folder = name.partition("/")[0]
    return "images" if is_digits(folder) or _BLOCK_NAME.fullmatch(name) else folder


def owner_of(name: str) -> int:
    """Return the VMID in an image's name, or 0."""
    folder = name.partition("/")[0]
    block = _BLOCK_NAME.fullmatch(name)
    if block:
        return int(block[1])
    return int(folder) if is_digits(folder) else 0


def image_name(storage: Storage, vmid: int, stem: str, image_format: str) -> str:
    """Return the name of a VM's volume: a file in the VM's directory, or a block device."""
    if not kind(storage).files:
        return f"vm-{vmid}-{stem}" + (f".{QCOW2}" if image_format == QCOW2 else "")
    extension = "" if stem == "cloudinit" and image_format == "raw" else f".{image_format}"
    return f"{vmid}/vm-{vmid}-{stem}{extension}"


def format_of(name: str) -> str:
    """Return the image format by a file's name."""
    extension = name.rpartition(".")[2].lower()
    return extension if extension in {"raw", "qcow2", "vmdk", "iso", "subvol"} else "raw"


def named(storage: Storage, vmid: int, name: str, image_format: str) -> str:
    """Return the name of a new volume with this wanted name. Raises PveError if it isn't allowed.

    A file storage takes any name with an extension, LVM those of any VM, others the VM's own.
    """
    one = kind(storage)
    if one.files:
        match = _FILE_NAME.fullmatch(name)
        if match is None:
            raise PveError(f"unable to parse volume filename '{name}'")
        if match[1] != image_format:
            raise PveError(
                f"illegal name '{name}' - wrong extension for format ('{match[1]} != "
                f"'{image_format}')"
            )
        return f"{vmid}/{name}"
    own = name.startswith(f"vm-{vmid}-")
    if not (own if "{vmid}" in one.texts.bad_name else _ANY_BLOCK_NAME.fullmatch(name)):
        raise PveError(one.texts.bad_name.format(name=name, vmid=vmid))
    wanted = f".{QCOW2}" if image_format == QCOW2 and QCOW2 in one.formats else ""
    if not name.endswith(wanted) or (name.endswith(f".{QCOW2}") and image_format == RAW):
        stem = name.removesuffix(f".{QCOW2}")
        raise PveError(
            f"volume name '{name}' does not match requested format '{image_format}' "
            f"(did you mean '{stem}{wanted}'?)"
        )
    return name


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
    content, one = content_of(name), kind(storage)
    if not one.files:
        return one.device.format(place=place_of(storage), name=name, storage=storage.id)
    tail = name if content == "images" else name.partition("/")[2]
    if content == "images" and one.subvolumes and tail.endswith(f".{RAW}"):
        tail = f"{tail.removesuffix(f'.{RAW}')}/disk.{RAW}"
    return f"{storage.path}/{CONTENT_DIRECTORY.get(content, content)}/{tail}"


def say(template: str, storage: Storage, volume: str, **more: str) -> PveError:
    """Return the error with a text of ``storage_kinds.Texts`` about a volume of this name."""
    path = path_of(storage, volume).removesuffix(f"/disk.{RAW}")
    named = {"path": path, "place": place_of(storage), "storage": storage.id, **more}
    return PveError(template.format(name=volume, volid=f"{storage.id}:{volume}", **named))
