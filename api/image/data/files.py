"""Reads parts of a file by their place, which a header may give as any number."""

from __future__ import annotations

from typing import BinaryIO

#: more is no place in a file, and no size of a disk
MOST_BYTES = 2**63 - 1


def at(file: BinaryIO, position: int, length: int) -> bytes:
    """Return bytes of a file: fewer at its end, none outside it."""
    if not 0 <= position <= MOST_BYTES or length <= 0:
        return b""
    file.seek(position)
    return file.read(length)
