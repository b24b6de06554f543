"""The header of a qcow2 image: its size, and what it names that isn't in the file.

Source: QEMU docs/interop/qcow2.txt. oslo.utils has checks of its own, which refuse images with
extended L2 entries and take those that are encrypted.
"""

from __future__ import annotations

import struct
from typing import BinaryIO

from api.image.files import at
from common.errors import Invalid
from web.errors import UnsupportedMedia

_HEAD_BYTES, _HEAD_BYTES_V3 = 72, 104
_SMALLEST_CLUSTER, _LARGEST_CLUSTER = 9, 21
_DATA_FILE = 1 << 2
#: incompatible features that are known: dirty, corrupt, data file, compression, extended L2
_KNOWN_FEATURES = 0b11111
#: header extensions that name another file, or keys
_FOREIGN = {
    0x44415441: "A qcow2 image with a data file can't be imported: convert it first.",
    0x0537BE77: "An encrypted qcow2 image can't be imported: convert it to one without first.",
}


def virtual_size(file: BinaryIO) -> int:
    """Return the size of the disk, bytes. Raises Invalid, UnsupportedMedia."""
    head = at(file, 0, _HEAD_BYTES_V3)
    if len(head) < _HEAD_BYTES:
        raise UnsupportedMedia("Image content does not match disk_format: its header is cut off.")
    version, backing, _, cluster_bits, size, encryption = struct.unpack_from(">IQIIQI", head, 4)
    if version not in (2, 3):
        raise Invalid(f"A qcow2 image of version {version} can't be imported.")
    if backing:
        raise Invalid("A qcow2 image with a backing file can't be imported: convert it first.")
    if encryption:
        raise Invalid(_FOREIGN[0x0537BE77])
    if not _SMALLEST_CLUSTER <= cluster_bits <= _LARGEST_CLUSTER:
        raise Invalid(f"The clusters of the qcow2 image are said to have 2^{cluster_bits} bytes.")
    length = _HEAD_BYTES
    if version == 3:
        length = _length_of_v3(head, 1 << cluster_bits)
    _check_extensions(at(file, length, (1 << cluster_bits) - length))
    if not size:
        raise Invalid("The disk of the image has no bytes.")
    return int(size)


def _length_of_v3(head: bytes, cluster_bytes: int) -> int:
    """Check the features; return the length of the header."""
    if len(head) < _HEAD_BYTES_V3:
        raise UnsupportedMedia("Image content does not match disk_format: its header is cut off.")
    (features,) = struct.unpack_from(">Q", head, 72)
    (length,) = struct.unpack_from(">I", head, 100)
    if features & _DATA_FILE:
        raise Invalid(_FOREIGN[0x44415441])
    if features & ~_KNOWN_FEATURES:
        raise Invalid("The qcow2 image has features that are not known here.")
    if not _HEAD_BYTES_V3 <= length <= cluster_bytes:
        raise Invalid(f"The header of the qcow2 image is said to have {length} bytes.")
    return int(length)


def _check_extensions(data: bytes) -> None:
    """Raise Invalid for a header extension that names another file or keys."""
    position = 0
    while position + 8 <= len(data):
        kind, length = struct.unpack_from(">II", data, position)
        if not kind:
            return
        if kind in _FOREIGN:
            raise Invalid(_FOREIGN[kind])
        position += 8 + (length + 7 & ~7)
