"""Calls about snapshots of volumes."""

from __future__ import annotations

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import NewVolumeSnapshot, VolumeEdit
from conductor.rpc_api import VolumeSnapshotRpc


class VolumeSnapshotCalls(Base):
    """See ``conductor.rpc_api.VolumeSnapshotRpc``."""

    def create_volume_snapshot(self, ctxt: RequestContext, snapshot: NewVolumeSnapshot) -> str:
        """Begin to take a snapshot of a volume; return its id.

        Raises VolumeNotFound, Invalid (the volume's status, or what its storage can't do while a
        server has it), QuotaExceeded.
        """
        return self._rpc.call(ctxt, VolumeSnapshotRpc.create_volume_snapshot, snapshot=snapshot)

    def edit_volume_snapshot(
        self, ctxt: RequestContext, snapshot_id: str, edit: VolumeEdit
    ) -> None:
        """Change what is said of a snapshot. Raises SnapshotNotFound, also for metadata."""
        self._rpc.call(
            ctxt, VolumeSnapshotRpc.edit_volume_snapshot, snapshot_id=snapshot_id, edit=edit
        )

    def delete_volume_snapshot(self, ctxt: RequestContext, snapshot_id: str) -> None:
        """Begin to remove a snapshot. Raises SnapshotNotFound, Invalid (its status)."""
        self._rpc.call(ctxt, VolumeSnapshotRpc.delete_volume_snapshot, snapshot_id=snapshot_id)

    def reset_volume_snapshot(self, ctxt: RequestContext, snapshot_id: str, status: str) -> None:
        """Set a snapshot's status. Raises SnapshotNotFound, Invalid."""
        self._rpc.call(
            ctxt,
            VolumeSnapshotRpc.reset_volume_snapshot,
            snapshot_id=snapshot_id,
            status=status,
        )

    def revert_volume(self, ctxt: RequestContext, volume_id: str, snapshot_id: str) -> None:
        """Begin to bring a volume back to its last snapshot.

        Raises VolumeNotFound, Invalid (another snapshot, another size, a copy), Conflict (a
        status).
        """
        self._rpc.call(
            ctxt, VolumeSnapshotRpc.revert_volume, volume_id=volume_id, snapshot_id=snapshot_id
        )
