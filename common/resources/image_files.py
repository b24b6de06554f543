"""The files on clusters' storages that hold what users uploaded.

The name says whose data it is, and which: ``mn-<cloud>-<image>-<project>-<digest>.<disk format>``,
the cloud's and the image's UUIDs, the project that owns the image, and the beginning of the data's
SHA-512. Several clouds may share a
storage, and users choose the IDs of images; Proxmox VE gives a file its name only after the data's
hash was found right. So a file is this cloud's, and its content what the record says, by its name
alone; and no operator's file has such a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from common import ids

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_OWNER = r"[0-9A-Za-z-]{1,64}"
_NAME = re.compile(
    rf"mn-(?P<cloud>{_UUID})-(?P<image>{_UUID})-(?:(?P<owner>{_OWNER})-)?(?P<digest>[0-9a-f]+)\.(?:qcow2|raw|vmdk|iso)"
)
#: of any cloud, and of any form that names had or will have
_ANYBODYS = re.compile(rf"mn-{_UUID}.*")
_DIGITS = 32


@dataclass(frozen=True)
class ImageFile:
    """What the name of a file says."""

    cloud: str
    image_id: str
    digest: str
    project_id: str = ""
    """The image's owner; empty: an ID that no file's name may have."""


def content(disk_format: str) -> str:
    """Return the content type of the storages that take images of a format."""
    return "iso" if disk_format == "iso" else "import"


def volid(
    storage: str, cloud: str, image_id: str, sha512: str, disk_format: str, project_id: str = ""
) -> str:
    """Return the volume that an image's data are on this storage."""
    owner = f"{project_id}-" if re.fullmatch(_OWNER, project_id) else ""
    name = f"mn-{cloud_in_name(cloud)}-{image_id}-{owner}{sha512[:_DIGITS]}"
    return f"{storage}:{content(disk_format)}/{name}.{disk_format}"


def parse(volume: str) -> ImageFile | None:
    """Return what the name of a volume, or a file, says; None: it holds no upload."""
    found = _NAME.fullmatch(volume.rsplit("/", 1)[-1])
    if found is None:
        return None
    return ImageFile(found["cloud"], found["image"], found["digest"], found["owner"] or "")


def is_upload(volume: str) -> bool:
    """Return whether a volume's name is that of an upload of any cloud: no image for all."""
    return _ANYBODYS.fullmatch(volume.rsplit("/", 1)[-1]) is not None


def is_of(volume: str, cloud: str, image_id: str) -> bool:
    """Return whether a volume holds data of this cloud's image, by its name."""
    found = parse(volume)
    return found is not None and (found.cloud, found.image_id) == (
        cloud_in_name(cloud),
        image_id,
    )


def listed(upload: ImageFile) -> str:
    """Return how agents name an upload's image: other clouds may have one with the same ID."""
    return f"{upload.cloud}/{upload.image_id}"


def of_cloud(names: Iterable[str], cloud: str) -> tuple[str, ...]:
    """Return the IDs of those images that a cloud may use, of what agents name."""
    mine = f"{cloud_in_name(cloud)}/"
    return tuple(
        name.removeprefix(mine) for name in names if name.startswith(mine) or "/" not in name
    )


def cloud_in_name(cloud: str) -> str:
    """Return how a cloud is named there: its ID, which is a UUID where the database was made by
    its migrations."""
    return cloud if ids.is_uuid(cloud) else ids.named("cloud", cloud)
