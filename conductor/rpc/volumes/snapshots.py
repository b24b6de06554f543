"""Calls about snapshots of volumes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from common.context import RequestContext
from conductor.rpc.volumes.volumes import VolumeEdit


@dataclass(frozen=True)
class NewVolumeSnapshot:
    """A snapshot of a volume that is asked for."""

    volume_id: str
    name: str = ""
    description: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    in_use: bool = False
    """Whether a server may have the volume."""


class VolumeSnapshotRpc(Protocol):
    """Snapshots of volumes."""

    def create_volume_snapshot(self, ctxt: RequestContext, snapshot: NewVolumeSnapshot) -> str:
        """Begin to take a snapshot of a volume; return its id.

        Raises VolumeNotFound, Invalid (the volume's status, or its storage can't do it while the
        volume is attached), QuotaExceeded.
        """

    def edit_volume_snapshot(
        self, ctxt: RequestContext, snapshot_id: str, edit: VolumeEdit
    ) -> None:
        """Change a snapshot's record. Raises SnapshotNotFound, also for metadata."""

    def delete_volume_snapshot(self, ctxt: RequestContext, snapshot_id: str) -> None:
        """Begin to remove a snapshot. Raises SnapshotNotFound, Invalid (its status)."""

    def reset_volume_snapshot(self, ctxt: RequestContext, snapshot_id: str, status: str) -> None:
        """Set a snapshot's status. Raises SnapshotNotFound, Invalid."""

    def revert_volume(self, ctxt: RequestContext, volume_id: str, snapshot_id: str) -> None:
        """Begin to bring a volume back to its last snapshot.

        Raises VolumeNotFound, Invalid (another snapshot, another size, a copy), Conflict (a
        status).
        """
