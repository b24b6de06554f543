"""What oslo.utils leaves open of a VMDK: all by which QEMU reads another file, or another size.

QEMU takes the extents of the descriptor if the header's capacity is 0, searches the descriptor
for a parent's name without regard to lines or comments, reads on to the first null byte whatever
length the header says, and takes the capacity of the footer where there is one (block/vmdk.c).
"""

from __future__ import annotations

import re
import struct
from typing import BinaryIO

from oslo_utils.imageutils import format_inspector

from api.image.data.files import at
from common.errors import Invalid

_MAGIC = b"KDMV"
_SECTOR = 512
_FOOTER_BYTES = 1536
_AT_END = 2**64 - 1
#: QEMU reads no more of a descriptor
_MOST_DESCRIPTOR = (1 << 20) - 1
#: VMDKs that are one file, as in Glance's ``vmdk_allowed_types``
_TYPES = ("streamOptimized", "monolithicSparse")
_NO_PARENT = "ffffffff"
_FIELD = re.compile(r'([A-Za-z]+)\s*=\s*"?([^"]*)"?')
_EXTENT = re.compile(r'(?:RW|RDONLY|NOACCESS) [0-9]{1,18} SPARSE "[^"/\\:]{1,255}"', re.IGNORECASE)


def virtual_size(
    file: BinaryIO, size_bytes: int, inspector: format_inspector.FileInspector | None
) -> int:
    """Return the size of the disk, bytes. ``inspector`` has read the whole file; None: too short.

    Raises Invalid for what isn't one file that stands for itself.
    """
    if not at(file, 0, 4).startswith(_MAGIC):
        raise Invalid("A VMDK whose data are in other files can't be imported.")
    capacity, footer_at = _header(at(file, 0, _SECTOR))
    _check_descriptor(file)
    if footer_at == _AT_END:
        footer = at(file, size_bytes - _FOOTER_BYTES + _SECTOR, _SECTOR)
        if size_bytes % _SECTOR or size_bytes < 2 * _FOOTER_BYTES:
            raise Invalid("The VMDK is cut off.")
        if _header(footer)[0] != capacity:
            raise Invalid("The footer of the VMDK says another size than its header.")
    if inspector is None:
        raise Invalid("The VMDK is cut off.")
    _check_safety(inspector)
    return capacity * _SECTOR


def _header(data: bytes) -> tuple[int, int]:
    """Return the capacity in sectors, and where the grain directory is said to be."""
    if len(data) < _SECTOR or not data.startswith(_MAGIC):
        raise Invalid("The VMDK is cut off.")
    capacity, _, _, _, _, _, directory = struct.unpack_from("<QQQQIQQ", data, 12)
    if not capacity:
        raise Invalid("The disk of the VMDK has no bytes, or its data are in other files.")
    return int(capacity), int(directory)


def _check_descriptor(file: BinaryIO) -> None:
    length = struct.unpack("<QQ", at(file, 28, 16))[1] * _SECTOR
    text, ended, _ = at(file, _SECTOR, min(length, _MOST_DESCRIPTOR)).partition(b"\0")
    if not ended or not text.isascii():
        raise Invalid("The descriptor of the VMDK has no end, or isn't plain text.")
    if b"parentfilenamehint" in text.lower():
        raise Invalid("A VMDK with a parent can't be imported: convert it first.")
    lines = [line.strip() for line in re.split(r"[\r\n]+", text.decode("ascii"))]
    _check_fields([line for line in lines if line and not line.startswith("#")])
    if text.count(b"createType") != 1:
        raise Invalid(f"A VMDK must be of one of the types {', '.join(_TYPES)}.")


def _check_fields(lines: list[str]) -> None:
    fields = [found for line in lines if (found := _FIELD.fullmatch(line)) is not None]
    said = {found[1].lower(): found[2] for found in fields}
    if said.get("createtype") not in _TYPES:
        raise Invalid(f"A VMDK must be of one of the types {', '.join(_TYPES)}.")
    if said.get("parentcid", _NO_PARENT).lower() != _NO_PARENT:
        raise Invalid("A VMDK with a parent can't be imported: convert it first.")
    rest = [line for line in lines if _FIELD.fullmatch(line) is None]
    extents = [line for line in rest if not line.lower().startswith("ddb.")]
    if len(extents) != 1 or _EXTENT.fullmatch(extents[0]) is None:
        raise Invalid("A VMDK must have one extent, which is the file itself: convert it first.")


def _check_safety(inspector: format_inspector.FileInspector) -> None:
    try:
        inspector.safety_check()
    except format_inspector.SafetyCheckFailed as error:
        why = "; ".join(str(one) for one in error.failures.values())
        raise Invalid(f"The VMDK can't be imported: {why}.") from error
    except format_inspector.ImageFormatError as error:
        raise Invalid(f"The VMDK can't be imported: {error}.") from error
