"""What an operation was asked, and what was decided and reserved for it: one class per action.

Both are stored as JSON in the operation's row. The place where it acts is flat in a plan's JSON,
as the previous release, which had one class for all actions, writes and reads it. Unknown keys are
ignored, missing ones take their default.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common import codec
from common.messages.commands import (
    GuestFile,
    Image,
    Nic,
    Placed,
    Template,
    VolumeSource,
    VolumeUser,
)
from common.messages.scheduling import Alternate, ImageHome
from common.resources import volumes
from common.resources.bulk_migrations import Move, Steering
from common.resources.states import InternalAction
from common.resources.volumes import VolumeAction


@dataclass(frozen=True)
class Place:
    """A host with its node and cluster, and a VMID there; None: not decided."""

    host: str | None = None
    uuid: str | None = None
    """Resource provider of the host."""
    cluster: str | None = None
    node: str | None = None
    vmid: int | None = None


#: not decided
NOWHERE = Place()


@dataclass(frozen=True)
class Plan:
    """Where an operation acts: committed before Proxmox VE is called."""

    target: Place = NOWHERE


@dataclass(frozen=True)
class CreatePlan(Plan):
    """The plan of a build."""

    worker: str | None = None
    storage: str | None = None
    alternates: tuple[Alternate, ...] = ()
    failed_hosts: tuple[str, ...] = ()
    awaited: tuple[str, ...] = ()  # hosts that did not answer, and may be well again
    excused: int = 0  # attempts that don't count, as their hosts were awaited
    waits: int = 0
    refusals: int = 0  # VMIDs that others had already
    image: Image | None = None
    template: Template | None = None
    nics: tuple[Nic, ...] = ()
    has_volumes: bool = False
    """Whether its server gets volumes: their attachments say which."""
    making_since: datetime.datetime | None = None
    """When it began to wait for volumes that are made on its host."""
    too_few: str | None = None
    """Why none of a create's builds bound by ``min_count`` is done; empty: enough hosts were
    found. None: not decided yet."""

    def on_another_host(self, failed: tuple[str, ...], *, awaited: bool) -> CreatePlan:
        """Return the plan of an attempt on other hosts; ``awaited``: these didn't answer."""
        others = tuple(host for host in self.awaited if host not in failed)
        return CreatePlan(
            alternates=self.alternates,
            failed_hosts=tuple(dict.fromkeys((*self.failed_hosts, *failed))),
            awaited=(*others, *failed) if awaited else others,
            excused=self.excused,
            waits=self.waits,
            refusals=self.refusals,
            nics=self.nics,
            has_volumes=self.has_volumes,
            too_few=self.too_few,
        )

    def after_wait(self, attempt: int) -> CreatePlan:
        """Return the plan of an attempt after a wait: awaited hosts count as not tried."""
        kept, waits = tuple(h for h in self.failed_hosts if h not in self.awaited), self.waits + 1
        return dataclasses.replace(
            self,
            failed_hosts=kept,
            alternates=(),
            waits=waits,
            excused=max(self.excused, attempt - 1 - waits - self.refusals - len(kept)),
        )

    def with_vmid(self, vmid: int | None) -> CreatePlan:
        """Return the plan with another VMID, or none."""
        return dataclasses.replace(self, target=dataclasses.replace(self.target, vmid=vmid))


@dataclass(frozen=True)
class ReapPlan(Plan):
    """The plan of a reap; see ``common.messages.commands.Destroy``."""

    stopped_on: str | None = None
    drive_only: bool = False
    left_behind: str | None = None


@dataclass(frozen=True)
class FollowPlan(Plan):
    """The plan of a search for a VM: from where the record had it, to where it is."""

    source: Place = NOWHERE
    saw: str | None = None  # what it found: conductor.sync.drift.Saw


@dataclass(frozen=True)
class DeletePlan(Plan):
    """The plan of a delete."""

    holders: tuple[str, ...] = ()
    """UUIDs of migrations that it ended, which may hold something beside the server."""


@dataclass(frozen=True)
class MovePlan(Plan):
    """The plan of what a bulk migration may begin."""

    bulk: int | None = field(default=None, kw_only=True)
    """The operation that began it, which looks again when it has ended; None: somebody did."""


@dataclass(frozen=True)
class ResizePlan(MovePlan):
    """The plan of a resize or migration, of its confirmation or its reversion; of an unshelving.

    With a ``source`` the VM moves from there to ``target``; a reversion has them the other way
    round.
    """

    source: Place = NOWHERE
    migration_id: int = 0
    holder: str = ""
    """UUID of the migration, which holds what its server needs of a second host."""
    case: str = "same_host"
    """``same_host`` or ``other_host``: which table of stages carries it out."""
    asked_host: str | None = None
    """The only host that it may go to."""
    storage: str | None = None
    """Storage on the target for disks that are copied; None: the one of the same name."""
    back_storage: str | None = None
    """The same on the source, where it is moved back."""
    was: str = ""
    """The server's vm_state before the resize."""
    old: Mapping[str, Any] = field(default_factory=dict)
    """The flavor before, and the new one; see ``conductor.rpc.servers.flavors.FlavorSnapshot``."""
    new: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NewContent:
    """New content of a volume, made in another holder beside the current content's.

    The volume's record names the current content until the new content replaces it.
    """

    volume_id: str = ""
    image_id: str = ""
    image_metadata: Mapping[str, Any] = field(default_factory=dict)
    storage: str = ""
    size_gib: int = 0
    source: VolumeSource | None = None
    place: Place = NOWHERE
    """The new holder's."""
    volid: str | None = None
    """None: it isn't made yet."""


@dataclass(frozen=True)
class PlugPlan(Plan):
    """The plan of an attached or detached interface; its port is made with the operation."""

    nic: Nic | None = None
    slot: int = 0
    """Where it is put, if that is free."""


@dataclass(frozen=True)
class SwapPlan(Plan):
    """The plan of what gives a VM other disks."""

    was: str = ""
    """The server's vm_state before."""
    image: Image | None = None
    nics: tuple[Nic, ...] = ()


@dataclass(frozen=True)
class LiveMigrationPlan(MovePlan):
    """The plan of a live migration, from ``source`` to ``target``."""

    source: Place = NOWHERE
    migration_id: int = 0
    holder: str = ""
    """UUID of the migration, which holds what its server needs of the target."""
    asked_host: str | None = None
    """The host that was asked for."""
    copy_disks: bool | None = None
    """See ``common.messages.commands.Move``."""
    without: tuple[str, ...] = ()
    """Hosts that could not take it."""
    storage: str | None = None
    """Storage on the target for disks that are copied; None: the one of the same name."""


@dataclass(frozen=True)
class EvacuationPlan(Plan):
    """The plan of an evacuation, from ``source`` to where the HA manager has brought the VM."""

    source: Place = NOWHERE
    migration_id: int = 0
    power_state: int = 0
    """As it was seen there."""
    seen: str = ""
    """What the manager did when it was last looked at."""


@dataclass(frozen=True)
class RebuildPlan(SwapPlan):
    """The plan of a rebuild."""

    former: Mapping[str, Any] = field(default_factory=dict)
    """Columns of the server before, which its disk was made by."""
    root_volume_id: str = ""
    """Its root disk, if that is a volume."""
    content: NewContent | None = None
    """The root volume's new content; None: it is left unchanged."""
    other_image: bool = False
    """Whether the root volume's new image differs from its former image."""


@dataclass(frozen=True)
class RescuePlan(SwapPlan):
    """The plan of a rescue."""

    image_id: str = ""
    """The image that it runs from."""


@dataclass(frozen=True)
class RemoveTemplatePlan(Plan):
    """The plan of the removal of a cached template."""

    image_id: str = ""


@dataclass(frozen=True)
class CacheImagePlan(Plan):
    """The plan of caching an image; its VMID is the template's."""

    image: Image | None = None
    template: Template | None = None
    storage: str | None = None


@dataclass(frozen=True)
class StoreImagePlan(Plan):
    """The plan of giving a cluster an uploaded image; it has no VMID."""

    volid: str = ""
    url: str = ""
    token: str = field(default="", repr=False)
    size_bytes: int = 0
    sha512: str = ""


@dataclass(frozen=True)
class RemoveImagePlan(Plan):
    """The plan of the removal of an uploaded image's file; it has no VMID."""

    volid: str = ""


@dataclass(frozen=True)
class VolumePlan(Plan):
    """The plan of what is done with a volume; its VMID is the holder's. Sizes in GiB."""

    storage: str = ""
    size_gib: int = 0
    former_gib: int = 0
    """What it had before it is extended."""
    volid: str | None = None
    source: VolumeSource | None = None
    """What it is copied from; None: it is empty, or exists already."""
    backup_id: str | None = None
    """The backup that it is restored from."""
    gone: bool = False
    """Whether the record is deleted with it; else only what a failure left is removed."""
    users: tuple[VolumeUser, ...] = ()
    """Servers that had it, besides the last one in the record."""


@dataclass(frozen=True)
class ReimagePlan(Plan):
    """The plan of giving a volume that no server has new content; its VMID is the new holder's."""

    content: NewContent = NewContent()


@dataclass(frozen=True)
class UploadVolumePlan(Plan):
    """The plan of an image of a volume; its VMID is the template's."""

    image_id: str = ""
    name: str = ""
    disk_format: str = "raw"
    """As the image shows it."""
    storage: str = ""
    source_vmid: int = 0
    """That of the holder."""
    volid: str = ""


@dataclass(frozen=True)
class VolumeSnapshotPlan(Plan):
    """The plan of what is done with a snapshot; its VMID is that of the volume's holder, or of a
    copy's own. Sizes in GiB.
    """

    volume_id: str = ""
    storage: str = ""
    size_gib: int = 0
    volid: str | None = None
    """The volume; where a copy is removed, the copy."""
    snapname: str | None = None
    """None: it is a copy."""
    way: str = ""
    gone: bool = True
    """Whether its record is deleted with it; else only what a failure left is removed."""


@dataclass(frozen=True)
class BackupPlan(Plan):
    """The plan of what is done with a backup; its VMID is that of the volume's holder."""

    volume_id: str = ""
    volid: str = ""
    """The volume."""
    storage: str = ""
    """The archive's."""
    archive: str | None = None
    gone: bool = True
    """Whether its record is deleted with it; else only what a failure left is removed, and the
    volume is parked."""


@dataclass(frozen=True)
class PlugVolumePlan(Plan):
    """The plan of giving a server a volume, or of taking it away."""

    volume_id: str = ""
    volid: str = ""
    holder: Placed | None = None
    slot: int = 1
    readonly: bool = False


@dataclass(frozen=True)
class VnetPlan(Plan):
    """The plan of making or removing the vnet of a network; it has no VMID."""

    vnet: str = ""
    zone: str = ""
    vni: int = 0
    fixed: bool = False
    """Whether an administrator asked for the VNI, so that no other one takes its place."""
    refused: tuple[int, ...] = ()
    """VNIs that the network had before and that turned out to be somebody else's."""


@dataclass(frozen=True)
class ImagePlan(Plan):
    """The plan of an image of a server; its VMID is the template's."""

    image_id: str = ""
    """Empty: a backup that is not to be kept."""
    name: str = ""
    source_vmid: int = 0
    storage: str = ""
    backup_type: str = ""
    rotation: int = 0


@dataclass(frozen=True)
class BulkPlan(Plan):
    """The plan of a bulk migration; its ``target`` is the host that is drained, if one is."""

    moves: tuple[Move, ...] = ()
    at_once: int = 1
    """How many of its moves may be in progress."""
    live_only: bool = False
    """Whether running servers are moved only while they run."""
    steering: Steering = Steering.GO


@dataclass(frozen=True)
class Params:
    """What was asked, beyond the action and its resource."""


@dataclass(frozen=True)
class Interface:
    """A requested network interface."""

    id: str
    """Its network's: name, bridge and what follows."""
    name: str
    bridge: str
    vlan: int | None
    mtu: int
    fixed_ip: str | None = None
    tag: str | None = None
    port_id: str | None = None
    """A port that the server has got already."""
    up: bool = True
    """Whether its network is switched on."""
    port_security: bool = True
    """Whether its network has new ports filtered, where ports are."""


@dataclass(frozen=True)
class CreateParams(Params):
    """What was asked of a build, beyond the server's record."""

    networks: tuple[Interface, ...] = ()
    force_host: str | None = None
    admin_password: str | None = field(default=None, repr=False)
    files: tuple[GuestFile, ...] = ()
    least_memory_mib: int = 0
    least_disk_gib: int = 0
    image_home: ImageHome | None = None
    min_count: int = 1


@dataclass(frozen=True)
class SwapParams(Params):
    """What was asked of a rebuild or a rescue, beyond the server's record."""

    admin_password: str | None = field(default=None, repr=False)
    files: tuple[GuestFile, ...] = ()


@dataclass(frozen=True)
class AdoptParams(Params):
    """What was asked of an adoption."""

    smbios_uuid: str | None = None


#: of actions that decide, or were asked, nothing else
NOTHING_PLANNED, NOTHING_ASKED = Plan(), Params()
#: actions whose plan has more than the place
PLANS: Mapping[str, type[Plan]] = {
    "create": CreatePlan,
    "delete": DeletePlan,
    InternalAction.REAP: ReapPlan,
    InternalAction.FOLLOW: FollowPlan,
    "migrate": ResizePlan,
    "resize": ResizePlan,
    "confirmResize": ResizePlan,
    "live-migration": LiveMigrationPlan,
    "evacuate": EvacuationPlan,
    "revertResize": ResizePlan,
    "unshelve": ResizePlan,
    VolumeAction.CREATE: VolumePlan,
    VolumeAction.DELETE: VolumePlan,
    VolumeAction.EXTEND: VolumePlan,
    VolumeAction.RETYPE: VolumePlan,
    VolumeAction.UPLOAD: UploadVolumePlan,
    VolumeAction.REVERT: VolumeSnapshotPlan,
    VolumeAction.REIMAGE: ReimagePlan,
    VolumeAction.PARK: VolumeSnapshotPlan,
    VolumeAction.TAKE_SNAPSHOT: VolumeSnapshotPlan,
    VolumeAction.DELETE_SNAPSHOT: VolumeSnapshotPlan,
    VolumeAction.BACK_UP: BackupPlan,
    VolumeAction.DELETE_BACKUP: BackupPlan,
    VolumeAction.RESTORE: VolumePlan,
    volumes.ATTACH: PlugVolumePlan,
    volumes.DETACH: PlugVolumePlan,
    "attach_interface": PlugPlan,
    "detach_interface": PlugPlan,
    "rebuild": RebuildPlan,
    "createImage": ImagePlan,
    "createBackup": ImagePlan,
    "rescue": RescuePlan,
    InternalAction.REMOVE_TEMPLATE: RemoveTemplatePlan,
    InternalAction.CACHE_IMAGE: CacheImagePlan,
    InternalAction.STORE_IMAGE: StoreImagePlan,
    InternalAction.REMOVE_IMAGE: RemoveImagePlan,
    InternalAction.MAKE_VNET: VnetPlan,
    InternalAction.REMOVE_VNET: VnetPlan,
    InternalAction.DRAIN: BulkPlan,
    InternalAction.REBALANCE: BulkPlan,
}
#: actions with parameters
PARAMS: Mapping[str, type[Params]] = {
    "create": CreateParams,
    "adopt": AdoptParams,
    "rebuild": SwapParams,
    "rescue": SwapParams,
}


def load_plan(action: str, data: Mapping[str, Any]) -> Plan:
    """Return the plan of an operation from its row."""
    return codec.load(PLANS.get(action, Plan), data)


def load_params(action: str, data: Mapping[str, Any]) -> Params:
    """Return what an operation was asked, from its row; defaults once that was deleted."""
    return codec.load(PARAMS.get(action, Params), data)
