"""Every flow of the conductor, by its action."""

from __future__ import annotations

from typing import Any

from common.resources import bulk_migrations, volumes
from common.resources.groups import GroupAction
from common.resources.states import InternalAction
from common.resources.volumes import VolumeAction
from conductor.cloud import Cloud
from conductor.engine.batch_close import Ending
from conductor.engine.cases import Cases
from conductor.engine.stage_runner import StageRunner
from conductor.engine.stages import Table
from conductor.images.cache_image import Cache
from conductor.images.remove_file import RemoveFileFlow
from conductor.images.remove_template import RemoveTemplate
from conductor.images.store_image import StoreImageFlow
from conductor.networks.make_vnet import MakeVnetFlow
from conductor.networks.remove_vnet import RemoveVnetFlow
from conductor.servers.bulk.bulk_migration import BulkFlow
from conductor.servers.create import create
from conductor.servers.create.create import Create
from conductor.servers.disks.rebuild import RebuildFlow
from conductor.servers.disks.rescue import RescueFlow, UnrescueFlow
from conductor.servers.disks.server_image import ServerImageFlow
from conductor.servers.disks.shelve import ShelveFlow
from conductor.servers.disks.unshelve import UnshelveFlow
from conductor.servers.groups.reconcile import GroupFlow
from conductor.servers.guest.change_password import ChangePasswordFlow
from conductor.servers.guest.plug import AttachFlow, DetachFlow
from conductor.servers.guest.volume_plug import AttachVolumeFlow, DetachVolumeFlow
from conductor.servers.manage.abandon import Abandon
from conductor.servers.manage.adopt import Adopt
from conductor.servers.manage.mark import Remark
from conductor.servers.manage.unmanage import Unmanage
from conductor.servers.move.end_resize import ConfirmFlow, RevertFlow
from conductor.servers.move.evacuation import EvacuationFlow
from conductor.servers.move.live_migration import LiveMigrationFlow
from conductor.servers.move.resize import ResizeFlow
from conductor.servers.power.power import COMMANDS, PowerFlow
from conductor.servers.remove.delete import Delete
from conductor.servers.remove.reap import Reap
from conductor.servers.remove.remove_left import RemoveLeft
from conductor.sync.relocation import Follow
from conductor.volumes.backups.back_up import BackUpFlow
from conductor.volumes.backups.remove_backup import RemoveBackupFlow
from conductor.volumes.backups.restore import RestoreFlow
from conductor.volumes.create_volume import CreateVolumeFlow
from conductor.volumes.extend_volume import ExtendVolumeFlow
from conductor.volumes.reimage import ReimageVolumeFlow
from conductor.volumes.remove_volume import RemoveVolumeFlow
from conductor.volumes.retype_volume import RetypeVolumeFlow
from conductor.volumes.snapshots.park_volume import ParkVolumeFlow
from conductor.volumes.snapshots.remove_snapshot import RemoveSnapshotFlow
from conductor.volumes.snapshots.revert import RevertVolumeFlow
from conductor.volumes.snapshots.take_snapshot import TakeSnapshotFlow
from conductor.volumes.upload_volume import UploadVolumeFlow


def tables(cloud: Cloud) -> dict[str, Table[Any] | Cases[Any]]:
    """Return action → the stages of its flow."""
    return {
        **{action: PowerFlow(cloud, action).table() for action in COMMANDS},
        "create": Create(cloud).table(),
        "delete": Delete(cloud).table(),
        "resize": ResizeFlow(cloud).cases(),
        "migrate": ResizeFlow(cloud).cases(),
        "confirmResize": ConfirmFlow(cloud).table(),
        "revertResize": RevertFlow(cloud).cases(),
        "changePassword": ChangePasswordFlow(cloud).table(),
        "attach_interface": AttachFlow(cloud).table(),
        "detach_interface": DetachFlow(cloud).table(),
        volumes.ATTACH: AttachVolumeFlow(cloud).table(),
        volumes.DETACH: DetachVolumeFlow(cloud).table(),
        "rebuild": RebuildFlow(cloud).cases(),
        "shelve": ShelveFlow(cloud).table(),
        "shelveOffload": ShelveFlow(cloud).table(stop=False),
        "unshelve": UnshelveFlow(cloud).cases(),
        "createImage": ServerImageFlow(cloud, "createImage").table(),
        "createBackup": ServerImageFlow(cloud, "createBackup").table(),
        "live-migration": LiveMigrationFlow(cloud).table(),
        "evacuate": EvacuationFlow(cloud).table(),
        "rescue": RescueFlow(cloud).table(),
        "unrescue": UnrescueFlow(cloud, "unrescue").table(),
        "adopt": Adopt(cloud, "adopt").table(),
        "release": Unmanage(cloud, "release").table(),
        InternalAction.REAP: Reap(cloud).table(),
        InternalAction.REMOVE_LEFT: RemoveLeft(cloud).table(),
        InternalAction.FOLLOW: Follow(cloud).table(),
        InternalAction.FORGET: Abandon(cloud).table(),
        InternalAction.MARK: Remark(cloud).table(),
        InternalAction.REMOVE_TEMPLATE: RemoveTemplate(cloud).table(),
        InternalAction.CACHE_IMAGE: Cache(cloud).table(),
        InternalAction.STORE_IMAGE: StoreImageFlow(cloud).table(),
        InternalAction.REMOVE_IMAGE: RemoveFileFlow(cloud).table(),
        InternalAction.MAKE_VNET: MakeVnetFlow(cloud).table(),
        InternalAction.REMOVE_VNET: RemoveVnetFlow(cloud).table(),
        VolumeAction.CREATE: CreateVolumeFlow(cloud).table(),
        VolumeAction.DELETE: RemoveVolumeFlow(cloud).table(),
        VolumeAction.EXTEND: ExtendVolumeFlow(cloud).table(),
        VolumeAction.RETYPE: RetypeVolumeFlow(cloud).table(),
        VolumeAction.UPLOAD: UploadVolumeFlow(cloud).table(),
        VolumeAction.REVERT: RevertVolumeFlow(cloud).table(),
        VolumeAction.REIMAGE: ReimageVolumeFlow(cloud).table(),
        VolumeAction.PARK: ParkVolumeFlow(cloud).table(),
        VolumeAction.TAKE_SNAPSHOT: TakeSnapshotFlow(cloud).table(),
        VolumeAction.DELETE_SNAPSHOT: RemoveSnapshotFlow(cloud).table(),
        VolumeAction.BACK_UP: BackUpFlow(cloud).table(),
        VolumeAction.DELETE_BACKUP: RemoveBackupFlow(cloud).table(),
        VolumeAction.RESTORE: RestoreFlow(cloud).table(),
        **{action: BulkFlow(cloud).table() for action in bulk_migrations.ACTIONS},
        **dict.fromkeys(GroupAction, GroupFlow(cloud).table()),
    }


def endings(cloud: Cloud) -> dict[str, Ending[Any]]:
    """Action → how an agent's success ends it; of the others each flow sees to it."""
    return {"create": create.ending(), "delete": Delete(cloud).ending()}


def flows(cloud: Cloud) -> dict[str, StageRunner]:
    """Return action → the runner of its flow."""
    store, name = cloud.store, cloud.name
    return {action: StageRunner(store, one, name) for action, one in tables(cloud).items()}
