"""Calls about volumes of projects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from common.context import RequestContext


@dataclass(frozen=True)
class NewVolume:
    """A volume that is asked for; sizes in GiB."""

    project_id: str
    size_gib: int
    name: str = ""
    description: str | None = None
    type_id: str | None = None
    """None: the default type."""
    availability_zone: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    image_id: str | None = None
    snapshot_id: str | None = None
    source_volume_id: str | None = None
    backup_id: str | None = None
    local_to_server: str | None = None
    """On a storage that this server's host has."""


@dataclass(frozen=True)
class VolumeEdit:
    """Changes to the record of a volume or snapshot; None: unchanged."""

    name: str | None = None
    description: str | None = None
    clear_description: bool = False
    metadata: dict[str, str] | None = None
    """Added to the current metadata, unless ``replace_metadata``."""
    replace_metadata: bool = False
    remove_metadata: tuple[str, ...] = ()
    """Raises NotFound for a key that doesn't exist."""
    image_metadata: dict[str, str] | None = None
    remove_image_metadata: str | None = None
    bootable: bool | None = None
    readonly: bool | None = None


@dataclass(frozen=True)
class NewVolumeImage:
    """An image that is made from a volume."""

    name: str
    disk_format: str = "raw"
    visibility: str = "shared"
    protected: bool = False


class VolumeRpc(Protocol):
    """Volumes of projects."""

    def create_volume(self, ctxt: RequestContext, volume: NewVolume) -> str:
        """Make a volume; return its id. Without a place for it, it is in error at once.

        Raises NotFound (type, image, server), Invalid (the image is larger; of a snapshot or of
        another volume), QuotaExceeded.
        """

    def edit_volume(self, ctxt: RequestContext, volume_id: str, edit: VolumeEdit) -> None:
        """Change a volume's record. Raises VolumeNotFound, also for missing metadata."""

    def delete_volume(
        self, ctxt: RequestContext, volume_id: str, *, force: bool = False, cascade: bool = False
    ) -> None:
        """Begin to remove a volume; ``force``: in more states; ``cascade``: its snapshots, too.

        Raises VolumeNotFound, Invalid (it is attached, has snapshots, or its status).
        """

    def extend_volume(
        self, ctxt: RequestContext, volume_id: str, size_gib: int, *, in_use: bool
    ) -> None:
        """Begin to extend a volume; ``in_use``: also while it is attached.

        Raises VolumeNotFound, Invalid (not larger, or its status), QuotaExceeded.
        """

    def reimage_volume(
        self, ctxt: RequestContext, volume_id: str, image_id: str, *, reserved: bool
    ) -> None:
        """Begin to write an image to a volume that is not attached; ``reserved``: or is reserved.

        Raises VolumeNotFound, ImageNotFound, Invalid (its status, its size, its snapshots).
        """

    def retype_volume(
        self, ctxt: RequestContext, volume_id: str, type_id: str, *, may_move: bool
    ) -> None:
        """Give a volume another type, or begin to; ``may_move``: also to another storage.

        If it may not move, or the type's storage can't take it, the volume gets a fault and is
        left unchanged. Raises VolumeNotFound, NotFound (the type), Invalid (its status),
        QuotaExceeded.
        """

    def upload_volume(self, ctxt: RequestContext, volume_id: str, image: NewVolumeImage) -> str:
        """Begin to make an image of a volume; return its id.

        Raises VolumeNotFound, Invalid (its status).
        """

    def reset_volume(self, ctxt: RequestContext, volume_id: str, status: str) -> None:
        """Set a volume's status.

        Raises VolumeNotFound, Invalid where that can't be, Conflict while an operation is open.
        """

    def reserve_volume(self, ctxt: RequestContext, volume_id: str, *, wanted: bool) -> None:
        """Set a volume that is available to reserved, or back. Raises VolumeNotFound, Invalid."""
