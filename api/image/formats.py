"""What the first bytes of a disk image say of it: its format, and what of it is dangerous.

A file may name others that the storage's host would read in its place, and a guest can write what
the next build takes for a header. So what isn't plainly what its image says is refused.

Sources: QEMU docs/interop/qcow2.txt; VMware's Virtual Disk Format 1.1; ECMA-119.
"""

from __future__ import annotations

import re
import struct
from typing import BinaryIO

from common.errors import Invalid
from web.errors import UnsupportedMedia

_QCOW2_MAGIC = b"QFI\xfb"
_VMDK_MAGIC = b"KDMV"
_VMDK_TEXT = b"# Disk DescriptorFile"
_ISO_MAGIC, _ISO_AT = b"CD001", 32_769
_SECTOR = 512
#: more is no place in a file, and no size of a disk
_MOST_BYTES = 2**63 - 1

_DATA_FILE = 1 << 2
#: incompatible features that are known: dirty, corrupt, data file, compression, extended L2
_KNOWN_FEATURES = 0b11111
#: VMDKs that are one file, as in Glance's ``vmdk_allowed_types``
_VMDK_TYPES = ("streamOptimized", "monolithicSparse")
_VMDK_DESCRIPTOR_LIMIT = 1 << 20


def virtual_size(file: BinaryIO, size_bytes: int, disk_format: str) -> int:
    """Return the size of the disk that an image holds, bytes.

    Raises UnsupportedMedia unless it is of this format, Invalid for one that names other files.
    """
    found = _format(file)
    if found != disk_format and not (disk_format == "raw" and found == "iso"):
        raise UnsupportedMedia(
            f"Image content does not match disk_format: it is {found}, not {disk_format}."
        )
    size = _SIZES[disk_format](file) if disk_format in _SIZES else size_bytes
    if size > _MOST_BYTES:
        raise Invalid(f"The disk of the image is said to have {size} bytes.")
    return size


def _at(file: BinaryIO, position: int, length: int) -> bytes:
    if position > _MOST_BYTES:
        return b""
    file.seek(position)
    return file.read(length)


def _format(file: BinaryIO) -> str:
    head = _at(file, 0, 64)
    if head.startswith(_QCOW2_MAGIC):
        return "qcow2"
    if head.startswith((_VMDK_MAGIC, _VMDK_TEXT)):
        return "vmdk"
    return "iso" if _at(file, _ISO_AT, len(_ISO_MAGIC)) == _ISO_MAGIC else "raw"


def _qcow2(file: BinaryIO) -> int:
    head = _at(file, 0, 80)
    if len(head) < 72:
        raise UnsupportedMedia("Image content does not match disk_format: its header is cut off.")
    version, backing, _, _, size = struct.unpack_from(">IQIIQ", head, 4)
    if version not in (2, 3):
        raise Invalid(f"A qcow2 image of version {version} can't be imported.")
    if backing:
        raise Invalid("A qcow2 image with a backing file can't be imported: convert it first.")
    features = struct.unpack_from(">Q", head, 72)[0] if version == 3 and len(head) == 80 else 0
    if features & _DATA_FILE:
        raise Invalid("A qcow2 image with a data file can't be imported: convert it first.")
    if features & ~_KNOWN_FEATURES:
        raise Invalid("The qcow2 image has features that are not known here.")
    return int(size)


def _vmdk(file: BinaryIO) -> int:
    head = _at(file, 0, 44)
    if not head.startswith(_VMDK_MAGIC) or len(head) < 44:
        raise Invalid("A VMDK whose data are in other files can't be imported.")
    sectors, _, descriptor, length = struct.unpack_from("<QQQQ", head, 12)
    if length * _SECTOR > _VMDK_DESCRIPTOR_LIMIT:
        raise Invalid("The descriptor of the VMDK is too long.")
    text = _at(file, descriptor * _SECTOR, length * _SECTOR)
    kind = re.search(rb'createType="([A-Za-z0-9]{1,64})"', text)
    if kind is None or kind[1].decode() not in _VMDK_TYPES:
        allowed = ", ".join(_VMDK_TYPES)
        raise Invalid(f"A VMDK must be one of the types {allowed}.")
    return int(sectors) * _SECTOR


#: format → what finds the size of the disk; of others it is the file's
_SIZES = {"qcow2": _qcow2, "vmdk": _vmdk}
