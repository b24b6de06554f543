"""The files on clusters' storages that hold what users uploaded.

The name says whose data it is, so that a file is provably this cloud's, and no operator's file
has it: ``mn-<image's UUID>.<disk format>``.
"""

from __future__ import annotations

import re

_NAME = re.compile(
    r"mn-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.(qcow2|raw|vmdk|iso)"
)


def content(disk_format: str) -> str:
    """Return the content type of the storages that take images of a format."""
    return "iso" if disk_format == "iso" else "import"


def volid(storage: str, image_id: str, disk_format: str) -> str:
    """Return the volume that an image's data are on this storage."""
    return f"{storage}:{content(disk_format)}/mn-{image_id}.{disk_format}"


def image_of(volume: str) -> str | None:
    """Return the image that a volume, or a file, holds the data of; None: of no upload."""
    found = _NAME.fullmatch(volume.rsplit("/", 1)[-1])
    return None if found is None else found[1]
