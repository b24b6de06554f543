"""The header of a qcow2 image: its size, and what it names that isn't in the file.

Source: QEMU docs/interop/qcow2.txt. oslo.utils has checks of its own, which refuse images with
extended L2 entries and take those that are encrypted.
"""

from __future__ import annotations

import struct
from typing import BinaryIO

from api.image.data.files import MOST_BYTES, at
from common.errors import Invalid
from web.errors import UnsupportedMedia

_HEAD_BYTES, _HEAD_BYTES_V3 = 72, 104
_SMALLEST_CLUSTER, _LARGEST_CLUSTER = 9, 21
_DATA_FILE, _COMPRESSION, _EXTENDED = 1 << 2, 1 << 3, 1 << 4
#: incompatible features that are known: dirty, corrupt, data file, compression, extended L2
_KNOWN_FEATURES = 0b11111
#: QEMU's bounds (block/qcow2.h): of clusters with extended L2 entries, of reference counts, and of
#: tables
_SMALLEST_EXTENDED, _MOST_REFCOUNT_ORDER, _ZSTD = 14, 6, 1
_MOST_SNAPSHOTS, _MOST_COUNTS_BYTES, _MOST_L1_ENTRIES = 65_536, 8 << 20, (32 << 20) // 8
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
        _check_v3(at(file, 0, length), cluster_bits)
    _check_tables(head, cluster_bits, size, extended=version == 3 and _features(head) & _EXTENDED)
    _check_extensions(at(file, length, (1 << cluster_bits) - length))
    if not size:
        raise Invalid("The disk of the image has no bytes.")
    return int(size)


def _length_of_v3(head: bytes, cluster_bytes: int) -> int:
    """Check the features; return the length of the header."""
    if len(head) < _HEAD_BYTES_V3:
        raise UnsupportedMedia("Image content does not match disk_format: its header is cut off.")
    features = _features(head)
    (length,) = struct.unpack_from(">I", head, 100)
    if features & _DATA_FILE:
        raise Invalid(_FOREIGN[0x44415441])
    if features & ~_KNOWN_FEATURES:
        raise Invalid("The qcow2 image has features that are not known here.")
    if not _HEAD_BYTES_V3 <= length <= cluster_bytes:
        raise Invalid(f"The header of the qcow2 image is said to have {length} bytes.")
    return int(length)


def _features(head: bytes) -> int:
    (features,) = struct.unpack_from(">Q", head, _HEAD_BYTES)
    return int(features)


def _check_v3(head: bytes, cluster_bits: int) -> None:
    """Raise Invalid for what QEMU refuses in the fields that version 3 added."""
    features, (order,) = _features(head), struct.unpack_from(">I", head, 96)
    compression = head[_HEAD_BYTES_V3] if len(head) > _HEAD_BYTES_V3 else 0
    wrong = (
        order > _MOST_REFCOUNT_ORDER
        or compression > _ZSTD
        or bool(compression) != bool(features & _COMPRESSION)
        or bool(features & _EXTENDED and cluster_bits < _SMALLEST_EXTENDED)
    )
    if wrong:
        raise _contradicts()


def _check_tables(head: bytes, cluster_bits: int, size: int, *, extended: int) -> None:
    """Raise Invalid for tables that no file can have, with which QEMU opens none.

    That they are in the file isn't asked: QEMU reads zeros behind its end, and imports those.
    """
    l1_entries, l1_at, counts_at, counts, snapshots, snapshots_at = struct.unpack_from(
        ">IQQIIQ", head, 36
    )
    bits = 2 * cluster_bits - (4 if extended else 3)
    wrong = (
        any(one & (1 << cluster_bits) - 1 or one >> 63 for one in (l1_at, counts_at))
        or (snapshots and (snapshots_at & (1 << cluster_bits) - 1 or snapshots_at >> 63))
        or snapshots > _MOST_SNAPSHOTS
        or counts << cluster_bits > _MOST_COUNTS_BYTES
        or l1_entries > _MOST_L1_ENTRIES
        # A header without an L1 table is a placeholder that some programs write: it is accepted.
        or (size <= MOST_BYTES and 0 < l1_entries < -(-size >> bits))
    )
    if wrong:
        raise _contradicts()


def _contradicts() -> Invalid:
    return Invalid(
        "The header of the qcow2 image contradicts itself, so it can't be imported. Copy it again "
        "from where it came, or look with: qemu-img check FILE"
    )


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
