"""What an uploaded file is, and the size of the disk in it.

A file may name others that the storage's host would read in its place, and a guest can write what
the next build takes for a header. So what isn't plainly what its image says is refused, and the
refusal says what it is and what to do. oslo.utils' inspectors, which Glance, Nova and Cinder use,
see the file as it arrives; ``qcow2`` and ``vmdk`` check the two formats that can name other files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from oslo_utils.imageutils import format_inspector

from api.image.data import qcow2, vmdk
from api.image.data.files import MOST_BYTES, at
from common.errors import Invalid
from common.log import logger
from web.errors import UnsupportedMedia

LOG = logger(__name__)

_CONVERT = "Convert it first: qemu-img convert -O qcow2 FILE disk.qcow2"
_UNPACK = "Unpack it first, and send the disk that is in it"
_NO_DISK = "Send a disk image"

#: (position, first bytes, what it is, what to do) of files that oslo.utils doesn't know, or knows
#: only if they are whole
_MARKS = (
    (0, b"QFI\xfb", "qcow2", ""),
    (0, b"KDMV", "vmdk", ""),
    (0, b"# Disk DescriptorFile", "vmdk", ""),
    (0, b"COWD", "a VMDK of ESX", _CONVERT),
    (0, b"conectix", "vhd", _CONVERT),
    (0, b"vhdxfile", "vhdx", _CONVERT),
    (0, b"QED\0", "qed", _CONVERT),
    (64, b"\x7f\x10\xda\xbe", "vdi", _CONVERT),
    (0, b"WithoutFreeSpace", "a Parallels image", _CONVERT),
    (0, b"WithouFreSpacExt", "a Parallels image", _CONVERT),
    (0, b"Bochs Virtual HD Image", "a Bochs image", _CONVERT),
    (0, b"LUKS\xba\xbe", "luks", "Send it without encryption"),
    (0, b"\xfd7zXZ\0", "xz", f"{_UNPACK}: xz -d FILE"),
    (0, b"\x1f\x8b\x08", "gzip", f"{_UNPACK}: gzip -d FILE"),
    (0, b"BZh", "bzip2", f"{_UNPACK}: bzip2 -d FILE"),
    (0, b"\x28\xb5\x2f\xfd", "zstd", f"{_UNPACK}: zstd -d FILE"),
    (0, b"\x04\x22\x4d\x18", "lz4", f"{_UNPACK}: lz4 -d FILE"),
    (0, b"LZIP", "lzip", f"{_UNPACK}: lzip -d FILE"),
    (0, b"PK\x03\x04", "zip", f"{_UNPACK}: unzip FILE"),
    (0, b"7z\xbc\xaf\x27\x1c", "7z", f"{_UNPACK}: 7z x FILE"),
    (257, b"ustar", "ova or tar", f"{_UNPACK}: tar -xf FILE"),
    (0, b"VMA\0", "an archive of Proxmox VE", f"{_UNPACK}: vma extract FILE DIRECTORY"),
    (0, b"<!doctype html", "an HTML page", _NO_DISK),
    (0, b"<html", "an HTML page", _NO_DISK),
    (0, b"<?xml", "an XML document", _NO_DISK),
)
_HEAD_BYTES = _SECTOR = 512
#: of formats with their mark in the last sector
_ENDS = ((b"conectix", "vhd", _CONVERT), (b"koly", "dmg", _CONVERT))
#: what else may be found in a file of a format: an ISO image may have a partition table, to be
#: written to a disk, and a plain disk may be such an image
_BESIDE: Mapping[str, frozenset[str]] = {
    "iso": frozenset({"gpt"}),
    "raw": frozenset({"iso", "gpt"}),
}
#: formats that images can have here, where another ``disk_format`` is what is wrong
_OURS = frozenset({"raw", "qcow2", "vmdk", "iso"})


class Inspected:
    """The pieces of a file, which are inspected as they pass."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        source: Any = iter(pieces)
        self._wrapper = format_inspector.InspectWrapper(source)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._wrapper)

    def found(self, image_id: str) -> Mapping[str, format_inspector.FileInspector]:
        """Return what the whole file is taken for: format → its inspector; at least raw."""
        try:
            return {str(one): one for one in self._wrapper.formats or ()}
        except Exception as error:
            # The inspectors parse what strangers send, and fail in ways of their own.
            LOG.info("The data of image %s can't be inspected: %r", image_id, error)
            raise UnsupportedMedia("The format of the image can't be found out.") from error


def virtual_size(
    file: BinaryIO, size_bytes: int, disk_format: str, inspected: Inspected, image_id: str
) -> int:
    """Return the size of the disk that an image holds, bytes; the log names its ID.

    Raises UnsupportedMedia unless the file is of this format, Invalid if it holds no disk or
    refers to other files.
    """
    if not size_bytes:
        raise Invalid("The image has no data.")
    found = inspected.found(image_id)
    _check_format(file, size_bytes, disk_format, found.keys() - {"raw"})
    size = size_bytes
    if disk_format == "qcow2":
        size = qcow2.virtual_size(file)
    elif disk_format == "vmdk":
        size = vmdk.virtual_size(file, size_bytes, found.get("vmdk"))
    if size > MOST_BYTES:
        raise Invalid(f"The disk of the image is said to have {size} bytes.")
    return size


def _check_format(
    file: BinaryIO, size_bytes: int, disk_format: str, found: Collection[str]
) -> None:
    name, remedy = _marked(file, size_bytes)
    others = sorted({*found, name} - {disk_format, "", *_BESIDE.get(disk_format, ())})
    if others:
        # A disk with partitions is a plain one.
        plainly = " and ".join(sorted({*found} - {"gpt"})) or "raw"
        raise _differs(name or plainly, disk_format, remedy)
    if disk_format not in {"raw", name, *found}:
        raise _differs("raw", disk_format, "")


def _marked(file: BinaryIO, size_bytes: int) -> tuple[str, str]:
    """Return what a file is by its marks, and what to do with it; empty: it has none."""
    head = at(file, 0, _HEAD_BYTES)
    for position, mark, name, remedy in _MARKS:
        if head[position : position + len(mark)].lower() == mark.lower():
            return name, remedy
    end = at(file, size_bytes - _SECTOR, _SECTOR)
    for mark, name, remedy in _ENDS:
        if end.startswith(mark):
            return name, remedy
    return "", ""


def _differs(what: str, disk_format: str, remedy: str) -> UnsupportedMedia:
    if not remedy:
        remedy = f"Set disk_format to {what}" if what in _OURS else _CONVERT
    return UnsupportedMedia(
        f"Image content does not match disk_format: it is {what}, not {disk_format}. {remedy}."
    )
