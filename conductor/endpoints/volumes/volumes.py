"""The RPC endpoint of volumes. The API has asked its policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from common.context import RequestContext
from common.errors import Conflict, Invalid
from common.log import logger
from common.resources.volumes import VolumeStatus
from conductor.cloud import Cloud
from conductor.engine.access import scope
from conductor.rpc.volumes.volumes import NewVolume, NewVolumeImage, VolumeEdit
from conductor.store.records import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, in_progress, transfers, volumes
from conductor.volumes import (
    create_volume,
    delete_volume,
    extend_volume,
    reimage,
    retype_volume,
    upload_volume,
)

LOG = logger(__name__)

T = TypeVar("T")

#: statuses that an administrator may set (cinder's schema of os-reset_status)
_SETTABLE = frozenset(
    {
        *(VolumeStatus.AVAILABLE, VolumeStatus.IN_USE, VolumeStatus.ERROR),
        *(VolumeStatus.MAINTENANCE, VolumeStatus.RESERVED),
    }
)


class VolumeEndpoint:
    """See ``conductor.rpc.VolumeRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def create_volume(self, ctxt: RequestContext, volume: NewVolume) -> str:
        def work(connection: Transaction) -> tuple[str, Operation | None]:
            return create_volume.begin(connection, self._cloud, ctxt, volume)

        made, operation = self._cloud.store.run(work)
        if operation is not None:
            self._cloud.start(operation)
        return made

    def edit_volume(self, ctxt: RequestContext, volume_id: str, edit: VolumeEdit) -> None:
        self._with(ctxt, volume_id, lambda c, row: volumes.edit(c, row, edit))

    def delete_volume(
        self, ctxt: RequestContext, volume_id: str, *, force: bool = False, cascade: bool = False
    ) -> None:
        def work(connection: Transaction, row: Any) -> Operation | None:
            which = (connection, self._cloud, ctxt, row)
            return delete_volume.begin(*which, force=force, cascade=cascade)

        operation = self._with(ctxt, volume_id, work)
        if operation is None:
            self._cloud.wake()  # for its snapshots
        else:
            self._cloud.start(operation)

    def extend_volume(
        self, ctxt: RequestContext, volume_id: str, size_gib: int, *, in_use: bool
    ) -> None:
        def work(connection: Transaction, row: Any) -> Operation:
            return extend_volume.begin(connection, self._cloud, ctxt, row, size_gib, in_use=in_use)

        self._cloud.start(self._with(ctxt, volume_id, work))

    def reimage_volume(
        self, ctxt: RequestContext, volume_id: str, image_id: str, *, reserved: bool
    ) -> None:
        def work(connection: Transaction, row: Any) -> Operation:
            return reimage.begin(connection, self._cloud, ctxt, row, image_id, reserved=reserved)

        self._cloud.start(self._with(ctxt, volume_id, work))

    def retype_volume(
        self, ctxt: RequestContext, volume_id: str, type_id: str, *, may_move: bool
    ) -> None:
        def work(connection: Transaction, row: Any) -> None:
            retype_volume.begin(connection, self._cloud, ctxt, row, type_id, may_move=may_move)

        self._with(ctxt, volume_id, work)
        self._cloud.wake()

    def upload_volume(self, ctxt: RequestContext, volume_id: str, image: NewVolumeImage) -> str:
        def work(connection: Transaction) -> str:
            row = volumes.locked(connection, volume_id, scope(ctxt))
            return upload_volume.begin(connection, self._cloud, ctxt, row, image)

        made = self._cloud.store.run(work)
        self._cloud.wake()
        return made

    def reset_volume(self, ctxt: RequestContext, volume_id: str, status: str) -> None:
        def work(connection: Transaction, row: Any) -> None:
            if status not in _SETTABLE:
                raise Invalid(f"Invalid volume: status {status} can't be set.")
            if in_progress.any_of(connection, row.id):
                raise Conflict(f"Volume {row.id} is {row.status}: an operation is under way.")
            attached = attachments.of_volume(connection, row.id) is not None
            if attached != (status == VolumeStatus.IN_USE) and status != VolumeStatus.ERROR:
                is_attached = "is attached" if attached else "is not attached"
                raise Invalid(
                    f"Invalid volume: status {status} can't be set: it {is_attached} to a server."
                )
            # What offered it to another project counts no more.
            transfers.end_of(connection, row.id)
            volumes.change(connection, row.id, status=status, previous_status=None)
            LOG.warning("Volume %s: an administrator set its status to %s.", row.id, status)

        self._with(ctxt, volume_id, work)

    def reserve_volume(self, ctxt: RequestContext, volume_id: str, *, wanted: bool) -> None:
        def work(connection: Transaction, row: Any) -> None:
            if wanted:
                if row.status != VolumeStatus.AVAILABLE:
                    raise Invalid(
                        "Invalid volume: Volume status must be available to reserve, but the "
                        f"status is {row.status}."
                    )
                volumes.change(connection, row.id, status=VolumeStatus.ATTACHING)
                return
            # Cinder changes nothing, without a word, where none was reserved. A volume that a
            # server is about to get is none that a user may give back.
            attached = attachments.of_volume(connection, row.id) is not None
            if row.status == VolumeStatus.ATTACHING and not attached:
                volumes.change(connection, row.id, status=VolumeStatus.AVAILABLE)

        self._with(ctxt, volume_id, work)

    def _with(
        self, ctxt: RequestContext, volume_id: str, work: Callable[[Transaction, Any], T]
    ) -> T:
        """Do something with a volume of the project, locked. Raises VolumeNotFound."""

        def do(connection: Transaction) -> T:
            return work(connection, volumes.locked(connection, volume_id, scope(ctxt)))

        return self._cloud.store.run(do)
