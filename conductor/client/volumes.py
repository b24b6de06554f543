"""Calls about volumes and their types."""

from __future__ import annotations

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import NewVolume, NewVolumeImage, VolumeEdit, VolumeTypeEdit
from conductor.rpc_api import VolumeRpc, VolumeTypeRpc


class VolumeCalls(Base):
    """See ``conductor.rpc_api.VolumeRpc`` and ``VolumeTypeRpc``."""

    def create_volume(self, ctxt: RequestContext, volume: NewVolume) -> str:
        """Make a volume; return its id. Without a place for it, it is in error at once.

        Raises NotFound (type, image, server), Invalid (the image is larger; of a snapshot or of
        another volume), QuotaExceeded.
        """
        return self._rpc.call(ctxt, VolumeRpc.create_volume, volume=volume)

    def edit_volume(self, ctxt: RequestContext, volume_id: str, edit: VolumeEdit) -> None:
        """Change what is said of a volume. Raises VolumeNotFound, also for missing metadata."""
        self._rpc.call(ctxt, VolumeRpc.edit_volume, volume_id=volume_id, edit=edit)

    def delete_volume(
        self, ctxt: RequestContext, volume_id: str, *, force: bool = False, cascade: bool = False
    ) -> None:
        """Begin to remove a volume; ``force``: in more states; ``cascade``: its snapshots, too.

        Raises VolumeNotFound, Invalid (a server has it, it has snapshots, or its status).
        """
        self._rpc.call(
            ctxt, VolumeRpc.delete_volume, volume_id=volume_id, force=force, cascade=cascade
        )

    def extend_volume(
        self, ctxt: RequestContext, volume_id: str, size_gib: int, *, in_use: bool
    ) -> None:
        """Begin to extend a volume; ``in_use``: also while a server has it.

        Raises VolumeNotFound, Invalid (not larger, or its status), QuotaExceeded.
        """
        self._rpc.call(
            ctxt, VolumeRpc.extend_volume, volume_id=volume_id, size_gib=size_gib, in_use=in_use
        )

    def reimage_volume(
        self, ctxt: RequestContext, volume_id: str, image_id: str, *, reserved: bool
    ) -> None:
        """Begin to give a volume that no server has an image; ``reserved``: also a reserved one.

        Raises VolumeNotFound, ImageNotFound, Invalid (its status, its size, its snapshots).
        """
        self._rpc.call(
            ctxt,
            VolumeRpc.reimage_volume,
            volume_id=volume_id,
            image_id=image_id,
            reserved=reserved,
        )

    def retype_volume(
        self, ctxt: RequestContext, volume_id: str, type_id: str, *, may_move: bool
    ) -> None:
        """Give a volume another type, or begin to; ``may_move``: also to another storage.

        Where its storage may not or can't take it, the volume has a fault, and stays as it is.
        Raises VolumeNotFound, NotFound (the type), Invalid (its status), QuotaExceeded.
        """
        self._rpc.call(
            ctxt,
            VolumeRpc.retype_volume,
            volume_id=volume_id,
            type_id=type_id,
            may_move=may_move,
        )

    def upload_volume(self, ctxt: RequestContext, volume_id: str, image: NewVolumeImage) -> str:
        """Begin to make an image of a volume; return its id.

        Raises VolumeNotFound, Invalid (its status).
        """
        return self._rpc.call(ctxt, VolumeRpc.upload_volume, volume_id=volume_id, image=image)

    def reset_volume(self, ctxt: RequestContext, volume_id: str, status: str) -> None:
        """Set a volume's status.

        Raises VolumeNotFound, Invalid where that can't be, Conflict while an operation is open.
        """
        self._rpc.call(ctxt, VolumeRpc.reset_volume, volume_id=volume_id, status=status)

    def reserve_volume(self, ctxt: RequestContext, volume_id: str, *, wanted: bool) -> None:
        """Set a volume that is available to reserved, or back. Raises VolumeNotFound, Invalid."""
        self._rpc.call(ctxt, VolumeRpc.reserve_volume, volume_id=volume_id, wanted=wanted)

    def create_volume_type(self, ctxt: RequestContext, asked: VolumeTypeEdit) -> str:
        """Make a type of a storage; return its id. Raises Conflict (the name), Invalid."""
        return self._rpc.call(ctxt, VolumeTypeRpc.create_volume_type, asked=asked)

    def edit_volume_type(self, ctxt: RequestContext, type_id: str, asked: VolumeTypeEdit) -> None:
        """Change a type. Raises NotFound, Conflict (the name)."""
        self._rpc.call(ctxt, VolumeTypeRpc.edit_volume_type, type_id=type_id, asked=asked)

    def delete_volume_type(self, ctxt: RequestContext, type_id: str) -> None:
        """Delete a type. Raises NotFound, Invalid while volumes have it."""
        self._rpc.call(ctxt, VolumeTypeRpc.delete_volume_type, type_id=type_id)

    def allow_volume_type(
        self, ctxt: RequestContext, type_id: str, project_id: str, *, wanted: bool
    ) -> None:
        """Let a project use a type that isn't public, or no more.

        Raises NotFound, Conflict (it is allowed already, or the type is public).
        """
        self._rpc.call(
            ctxt,
            VolumeTypeRpc.allow_volume_type,
            type_id=type_id,
            project_id=project_id,
            wanted=wanted,
        )

    def set_default_volume_type(
        self, ctxt: RequestContext, project_id: str, type_id: str | None
    ) -> None:
        """Set the type of a project's volumes for which none is named; None: the cloud's.

        Raises NotFound.
        """
        method = VolumeTypeRpc.set_default_volume_type
        self._rpc.call(ctxt, method, project_id=project_id, type_id=type_id)

    def update_volume_service(
        self, ctxt: RequestContext, service_uuid: str, *, disabled: bool, reason: str | None
    ) -> None:
        """Say whether new volumes may be on a service's host. Raises NotFound."""
        self._rpc.call(
            ctxt,
            VolumeTypeRpc.update_volume_service,
            service_uuid=service_uuid,
            disabled=disabled,
            reason=reason,
        )
