"""Snapshots and backups of volumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.messages.commands import (
    BackUpVolume,
    MakeVolume,
    SnapVolume,
)
from common.messages.facts import StorageFacts
from common.resources.volumes import VolumeAction
from conductor.endpoints.volumes.backups import BackupEndpoint
from conductor.endpoints.volumes.snapshots import VolumeSnapshotEndpoint
from conductor.endpoints.volumes.volumes import VolumeEndpoint
from conductor.rpc.volumes.backups import NewBackup
from conductor.rpc.volumes.snapshots import NewVolumeSnapshot
from conductor.store.records import Operation
from tests.functional.conductor.takeover.begin import (
    Story,
    operation_on,
    refused,
    volume,
)
from tests.functional.conductor.takeover.cloud import VOLUMES, Cloud
from tests.functional.conductor.takeover.deaths import Takeover


def _snapshot(cloud: Cloud, *, way: str = "online") -> Operation:
    """A snapshot of a volume is taken: in its holder, or as a copy."""
    cloud.snapshot_way = way
    volume_id = volume(cloud)
    endpoint = VolumeSnapshotEndpoint(cloud.world.conductor.cloud)
    made = endpoint.create_volume_snapshot(cloud.world.ctxt, NewVolumeSnapshot(volume_id))
    return operation_on(cloud, made, VolumeAction.TAKE_SNAPSHOT)


def _remove_snapshot(cloud: Cloud, *, way: str = "online") -> Operation:
    operation = _snapshot(cloud, way=way)
    cloud.work_off(cloud.heir, operation)
    endpoint = VolumeSnapshotEndpoint(cloud.world.conductor.cloud)
    endpoint.delete_volume_snapshot(cloud.world.ctxt, operation.resource_id)
    return operation_on(cloud, operation.resource_id, VolumeAction.DELETE_SNAPSHOT)


def _cascade(cloud: Cloud) -> Operation:
    """The last snapshot is deleted, and its volume with it."""
    operation = _snapshot(cloud)
    cloud.work_off(cloud.heir, operation)
    (volume,) = cloud.world.rows(VOLUMES)
    endpoint = VolumeEndpoint(cloud.world.conductor.cloud)
    endpoint.delete_volume(cloud.world.ctxt, volume.id, force=False, cascade=True)
    return operation_on(cloud, operation.resource_id, VolumeAction.DELETE_SNAPSHOT)


def _revert_volume(cloud: Cloud) -> Operation:
    operation = _snapshot(cloud)
    cloud.work_off(cloud.heir, operation)
    (volume,) = cloud.world.rows(VOLUMES)
    endpoint = VolumeSnapshotEndpoint(cloud.world.conductor.cloud)
    endpoint.revert_volume(cloud.world.ctxt, volume.id, operation.resource_id)
    return operation_on(cloud, volume.id, VolumeAction.REVERT)


def _back_up(cloud: Cloud) -> Operation:
    made = volume(cloud)
    cloud.world.storages.append(StorageFacts("safe", "nfs", True, True, 1000, 900, ("backup",)))
    cloud.world.beat()
    endpoint = BackupEndpoint(cloud.world.conductor.cloud)
    backup_id = endpoint.create_backup(cloud.world.ctxt, NewBackup(made))
    return operation_on(cloud, backup_id, VolumeAction.BACK_UP)


def _backed_up(cloud: Cloud) -> str:
    operation = _back_up(cloud)
    cloud.work_off(cloud.heir, operation)
    return operation.resource_id


def _remove_backup(cloud: Cloud) -> Operation:
    backup_id = _backed_up(cloud)
    endpoint = BackupEndpoint(cloud.world.conductor.cloud)
    endpoint.delete_backup(cloud.world.ctxt, backup_id, force=False)
    return operation_on(cloud, backup_id, VolumeAction.DELETE_BACKUP)


def _restore_backup(cloud: Cloud) -> Operation:
    """In place of what its volume has."""
    backup_id = _backed_up(cloud)
    (volume,) = cloud.world.rows(VOLUMES)
    endpoint = BackupEndpoint(cloud.world.conductor.cloud)
    endpoint.restore_backup(cloud.world.ctxt, backup_id, volume.id, None)
    return operation_on(cloud, volume.id, VolumeAction.RESTORE)


def _overtaken_restore(cloud: Cloud) -> Operation:
    """The volume is deleted by force during the restore."""
    operation = _restore_backup(cloud)
    endpoint = VolumeEndpoint(cloud.world.conductor.cloud)
    endpoint.delete_volume(cloud.world.ctxt, operation.resource_id, force=True)
    return operation


#: {action: {how: what becomes of volumes}}; see ``Cloud.volumes``
ENDS: Mapping[str, Mapping[str, list[Any]]] = {
    VolumeAction.TAKE_SNAPSHOT: {
        "well": [("available", 2, False), []],
        "well, as a copy": [("available", 2, False), []],
        "in vain": [("available", 2, False), []],
        "in vain, as a copy": [("available", 2, False), []],
    },
    VolumeAction.DELETE_SNAPSHOT: {
        "well": [("available", 2, False), []],
        "well, of a copy": [("available", 2, False), []],
        "well, with its volume": [[]],
    },
    VolumeAction.REVERT: {
        "well": [("available", 2, False), []],
        "in vain": [("error", 2, False), []],
    },
    VolumeAction.BACK_UP: {
        "well": [("available", 2, False), []],
        "in vain": [("available", 2, False), []],
    },
    VolumeAction.DELETE_BACKUP: {
        "well": [("available", 2, False), []],
    },
    VolumeAction.RESTORE: {
        "well": [("available", 2, False), []],
        "in vain": [("error_restoring", 2, False), []],
        "overtaken by a delete": [[]],
        "in vain, and overtaken by a delete": [[]],
    },
}
#: (status, whether it has a holder of its own) of snapshots
SNAPSHOT_ENDS: dict[tuple[str, str], list[tuple[str, bool]]] = {
    (VolumeAction.TAKE_SNAPSHOT, "well"): [("available", False)],
    (VolumeAction.TAKE_SNAPSHOT, "well, as a copy"): [("available", True)],
    (VolumeAction.TAKE_SNAPSHOT, "in vain"): [("error", False)],
    (VolumeAction.TAKE_SNAPSHOT, "in vain, as a copy"): [("error", False)],
    (VolumeAction.REVERT, "well"): [("available", False)],
    (VolumeAction.REVERT, "in vain"): [("available", False)],
}

STORIES: Mapping[tuple[str, str], Story] = {
    (VolumeAction.TAKE_SNAPSHOT, "well"): _snapshot,
    (VolumeAction.TAKE_SNAPSHOT, "well, as a copy"): lambda cloud: _snapshot(cloud, way="copy"),
    (VolumeAction.TAKE_SNAPSHOT, "in vain"): lambda cloud: refused(cloud, SnapVolume, _snapshot),
    (VolumeAction.TAKE_SNAPSHOT, "in vain, as a copy"): lambda cloud: refused(
        cloud, MakeVolume, lambda cloud: _snapshot(cloud, way="copy")
    ),
    (VolumeAction.DELETE_SNAPSHOT, "well"): _remove_snapshot,
    (VolumeAction.DELETE_SNAPSHOT, "well, of a copy"): lambda cloud: _remove_snapshot(
        cloud, way="copy"
    ),
    (VolumeAction.DELETE_SNAPSHOT, "well, with its volume"): _cascade,
    (VolumeAction.BACK_UP, "well"): _back_up,
    (VolumeAction.BACK_UP, "in vain"): lambda cloud: refused(cloud, BackUpVolume, _back_up),
    (VolumeAction.DELETE_BACKUP, "well"): _remove_backup,
    (VolumeAction.RESTORE, "well"): _restore_backup,
    (VolumeAction.RESTORE, "in vain"): lambda cloud: refused(cloud, MakeVolume, _restore_backup),
    (VolumeAction.RESTORE, "overtaken by a delete"): _overtaken_restore,
    (VolumeAction.RESTORE, "in vain, and overtaken by a delete"): lambda cloud: refused(
        cloud, MakeVolume, _overtaken_restore
    ),
    (VolumeAction.REVERT, "well"): _revert_volume,
    (VolumeAction.REVERT, "in vain"): lambda cloud: refused(cloud, SnapVolume, _revert_volume),
}


class TestSnapshots(Takeover):
    stories = STORIES

    dear = frozenset(
        {
            (VolumeAction.TAKE_SNAPSHOT, "in vain, as a copy"),
            (VolumeAction.DELETE_SNAPSHOT, "well, of a copy"),
        }
    )

    def expect(self, cloud: Cloud, action: str, how: str, ends: Mapping[str, Any]) -> None:
        assert ends["volumes"] == ENDS[action][how]
        assert ends["snapshots"] == SNAPSHOT_ENDS.get((action, how), [])
