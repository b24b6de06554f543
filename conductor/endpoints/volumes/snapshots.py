"""The RPC endpoint of snapshots of volumes. The API has asked its policy."""

from __future__ import annotations

from common.context import RequestContext
from common.errors import Invalid
from common.log import logger
from common.resources.states import ResourceType
from common.resources.volumes import SnapshotStatus
from conductor.cloud import Cloud
from conductor.engine.access import scope
from conductor.rpc.volumes.snapshots import NewVolumeSnapshot
from conductor.rpc.volumes.volumes import VolumeEdit
from conductor.store.ledger import operations as ledger
from conductor.store.records import Operation
from conductor.store.transactions import Transaction
from conductor.store.volumes import snapshots, volumes
from conductor.volumes.snapshots import remove_snapshot, revert, take_snapshot

LOG = logger(__name__)

#: statuses that an administrator may set
_SETTABLE = frozenset(
    {SnapshotStatus.AVAILABLE, SnapshotStatus.ERROR, SnapshotStatus.ERROR_DELETING}
)


class VolumeSnapshotEndpoint:
    """See ``conductor.rpc.VolumeSnapshotRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def create_volume_snapshot(self, ctxt: RequestContext, snapshot: NewVolumeSnapshot) -> str:
        def work(connection: Transaction) -> tuple[str, Operation | None]:
            row = volumes.locked(connection, snapshot.volume_id, scope(ctxt))
            return take_snapshot.begin(connection, self._cloud, ctxt, row, snapshot)

        made, operation = self._cloud.store.run(work)
        if operation is not None:
            self._cloud.start(operation)
        return made

    def edit_volume_snapshot(
        self, ctxt: RequestContext, snapshot_id: str, edit: VolumeEdit
    ) -> None:
        def work(connection: Transaction) -> None:
            row, _ = snapshots.locked(connection, snapshot_id, scope(ctxt))
            snapshots.edit(connection, row, edit)

        self._cloud.store.run(work)

    def delete_volume_snapshot(self, ctxt: RequestContext, snapshot_id: str) -> None:
        def work(connection: Transaction) -> None:
            row, volume = snapshots.locked(connection, snapshot_id, scope(ctxt))
            remove_snapshot.begin(connection, self._cloud, ctxt, row, volume)

        self._cloud.store.run(work)
        self._cloud.wake()

    def reset_volume_snapshot(self, ctxt: RequestContext, snapshot_id: str, status: str) -> None:
        def work(connection: Transaction) -> None:
            row, _ = snapshots.locked(connection, snapshot_id, scope(ctxt))
            if status not in _SETTABLE:
                raise Invalid(f"Invalid snapshot: status {status} can't be set.")
            if ledger.open_of(connection, row.id, ResourceType.SNAPSHOT):
                raise Invalid(
                    f"Invalid snapshot: Snapshot {row.id} is {row.status}: an operation is under "
                    "way."
                )
            snapshots.change(connection, row.id, status=status)
            LOG.warning("Snapshot %s: an administrator set its status to %s.", row.id, status)

        self._cloud.store.run(work)

    def revert_volume(self, ctxt: RequestContext, volume_id: str, snapshot_id: str) -> None:
        def work(connection: Transaction) -> Operation:
            row = volumes.locked(connection, volume_id, scope(ctxt))
            return revert.begin(connection, self._cloud, ctxt, row, snapshot_id)

        self._cloud.start(self._cloud.store.run(work))
