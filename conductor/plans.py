"""What an operation was asked, and what was decided and reserved for it: one class per action.

Both are stored as JSON in the operation's row. Unknown keys are ignored, missing ones take their
default, so that an older and a newer release read each other's rows.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from common import codec
from common.codec import Member
from common.messages.commands import Command, MakeVolume, VmParts
from common.messages.scheduling import Alternate
from common.resources import states, volumes
from common.resources.bulk_migrations import Move, Steering
from common.resources.groups import GroupAction
from common.resources.states import InternalAction
from common.resources.volumes import VolumeAction
from conductor.rpc.servers.servers import BuildRequest, FirstBoot


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
NOWHERE, _NO_COMMAND = Place(), Command()


@dataclass(frozen=True)
class Plan:
    """Where an operation acts: committed before Proxmox VE is called."""

    target: Place = NOWHERE


@dataclass(frozen=True)
class CommandPlan(Plan):
    """The plan of one command: what an agent is sent, but for how that begins."""

    command: Member[Command] = _NO_COMMAND

    def with_fields(self, **values: Any) -> Self:
        """Return the plan with these fields of its command."""
        return dataclasses.replace(self, command=dataclasses.replace(self.command, **values))


@dataclass(frozen=True)
class LeftPlan(CommandPlan):
    """The plan of the removal of what a build left on a host."""

    holder: str = ""
    """The consumer in placement that holds the host's share until the VM was seen gone."""
    build: int = 0
    """The build's operation."""


@dataclass(frozen=True)
class CreatePlan(Plan, VmParts):
    """The plan of a build."""

    worker: str | None = None
    alternates: tuple[Alternate, ...] = ()
    failed_hosts: tuple[str, ...] = ()
    awaited: tuple[str, ...] = ()  # hosts that did not answer, and may be well again
    excused: int = 0  # attempts that don't count, as their hosts were awaited
    waits: int = 0
    refusals: int = 0  # VMIDs that others had already
    has_volumes: bool = False
    """Whether its server gets volumes: their attachments say which."""
    making_since: datetime.datetime | None = None
    """When it began to wait for volumes that are made on its host."""
    too_few: str | None = None
    """Why none of a create's builds bound by ``min_count`` is done; empty: enough hosts were
    found. None: not decided yet."""
    waits_since: datetime.datetime | None = None
    """Since when it waits for room, as was asked; None: it never did."""
    waits_until: datetime.datetime | None = None
    left: str = ""
    """Whom the claim of the host that was left is still to be passed on to; see ``LeftPlan``."""

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
            waits_since=self.waits_since,
            waits_until=self.waits_until,
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
class MovePlan(CommandPlan):
    """The plan of what may move a server's VM: from ``source`` to ``target``, by a ``Move``.

    Without a ``source`` it is not decided yet, or the VM is not moved: there is no command then,
    or what is known of it.
    """

    source: Place = NOWHERE
    migration_id: int = 0
    holder: str = ""
    """UUID of the migration, which holds what its server needs of a second host."""
    asked_host: str | None = None
    """The only host that it may be moved to."""
    bulk: int | None = field(default=None, kw_only=True)
    """The bulk migration that began it, which looks again when it has ended; None: a user did."""


@dataclass(frozen=True)
class ResizePlan(MovePlan):
    """The plan of a resize or migration, of its confirmation or its reversion; of an unshelving.

    A reversion has source and target the other way round.
    """

    case: str = "same_host"
    """``same_host`` or ``other_host``: which table of stages carries it out."""
    back_storage: str | None = None
    """The command's ``target_storage`` where the VM is moved back to the source."""
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
    make: MakeVolume = field(default_factory=MakeVolume)
    """What makes it, but for how that begins."""
    place: Place = NOWHERE
    """The new holder's."""
    volid: str | None = None
    """None: it isn't made yet."""


@dataclass(frozen=True)
class SwapPlan(Plan, VmParts):
    """The plan of what gives a VM other disks."""

    was: str = ""
    """The server's vm_state before."""


@dataclass(frozen=True)
class LiveMigrationPlan(MovePlan):
    """The plan of a live migration."""

    without: tuple[str, ...] = ()
    """Hosts that could not take it."""


@dataclass(frozen=True)
class EvacuationPlan(Plan):
    """The plan of an evacuation, from ``source`` to where the HA manager has brought the VM."""

    source: Place = NOWHERE
    migration_id: int = 0
    power_state: int = 0
    """As it was seen there."""
    seen: str = ""
    """What the manager did when it was last looked at."""
    waits_since: datetime.datetime | None = None
    """Since when the manager finds no node, where the server waits for room."""
    waits_until: datetime.datetime | None = None


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
class VolumePlan(CommandPlan):
    """The plan of what is done with a volume; its VMID is the holder's."""

    former_gib: int = 0
    """What it had before it is extended."""
    backup_id: str | None = None
    """The backup that it is restored from."""


@dataclass(frozen=True)
class ReimagePlan(Plan):
    """The plan of giving a volume that no server has new content; its VMID is the new holder's."""

    content: NewContent = NewContent()


@dataclass(frozen=True)
class UploadVolumePlan(CommandPlan):
    """The plan of an image of a volume; its VMID is the template's."""

    disk_format: str = "raw"
    """As the image shows it."""


@dataclass(frozen=True)
class OfVolumePlan(CommandPlan):
    """The plan of what is done with a snapshot or a backup of a volume.

    Its VMID is that of the volume's holder, or of a copy's own.
    """

    volume_id: str = ""


@dataclass(frozen=True)
class BackupPlan(OfVolumePlan):
    """The plan of what is done with a backup."""

    gone: bool = True
    """Whether its record is deleted with it; else only what a failure left is removed, and the
    volume is parked."""


@dataclass(frozen=True)
class VnetPlan(CommandPlan):
    """The plan of making the vnet of a network; it has no VMID."""

    fixed: bool = False
    """Whether an administrator asked for the VNI, so that no other one takes its place."""
    refused: tuple[int, ...] = ()
    """VNIs that the network had before and that turned out to be somebody else's."""


@dataclass(frozen=True)
class ImagePlan(CommandPlan):
    """The plan of an image of a server; its VMID is the template's.

    A command without the ID of an image is that of a backup that is not to be kept.
    """

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
    waits_until: datetime.datetime | None = None
    """Until when a server that finds no host is tried again, however often."""
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
    owner: str = ""
    """Its network's project; empty: the network is a cluster's own."""


@dataclass(frozen=True)
class CreateParams(Params, BuildRequest):
    """What was asked of a build, beyond the server's record."""

    networks: tuple[Interface, ...] = ()


@dataclass(frozen=True)
class SwapParams(Params, FirstBoot):
    """What was asked of a rebuild or a rescue, beyond the server's record."""


@dataclass(frozen=True)
class AdoptParams(Params):
    """What was asked of an adoption."""

    smbios_uuid: str | None = None
    start: bool = False
    """Whether to start the VM, as its build would have done."""
    again: bool = False
    """Whether its marks name the server: it is one of this cloud, whose record was lost."""


#: of actions that decide, or were asked, nothing else
NOTHING_PLANNED, NOTHING_ASKED = Plan(), Params()
#: actions whose plan has more than the place
PLANS: Mapping[str, type[Plan]] = {
    "create": CreatePlan,
    "delete": DeletePlan,
    InternalAction.REAP: CommandPlan,
    InternalAction.REMOVE_LEFT: LeftPlan,
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
    VolumeAction.REVERT: OfVolumePlan,
    VolumeAction.REIMAGE: ReimagePlan,
    VolumeAction.PARK: OfVolumePlan,
    VolumeAction.TAKE_SNAPSHOT: OfVolumePlan,
    VolumeAction.DELETE_SNAPSHOT: OfVolumePlan,
    VolumeAction.BACK_UP: BackupPlan,
    VolumeAction.DELETE_BACKUP: BackupPlan,
    VolumeAction.RESTORE: VolumePlan,
    volumes.ATTACH: CommandPlan,
    volumes.DETACH: CommandPlan,
    "attach_interface": CommandPlan,
    "detach_interface": CommandPlan,
    "rebuild": RebuildPlan,
    "createImage": ImagePlan,
    "createBackup": ImagePlan,
    "rescue": RescuePlan,
    InternalAction.REMOVE_TEMPLATE: CommandPlan,
    InternalAction.CACHE_IMAGE: CommandPlan,
    InternalAction.STORE_IMAGE: CommandPlan,
    InternalAction.REMOVE_IMAGE: CommandPlan,
    InternalAction.MAKE_VNET: VnetPlan,
    InternalAction.REMOVE_VNET: CommandPlan,
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


#: what operations may be, by the tables that name them
KNOWN_ACTIONS = frozenset(
    str(one)
    for names in (states.ACTIONS, InternalAction, VolumeAction, GroupAction, PLANS, PARAMS)
    for one in names
)


def load_plan(action: str, data: Mapping[str, Any]) -> Plan:
    """Return the plan of an operation from its row."""
    return codec.load(PLANS.get(action, Plan), data)


def load_params(action: str, data: Mapping[str, Any]) -> Params:
    """Return what an operation was asked, from its row; defaults once that was deleted."""
    return codec.load(PARAMS.get(action, Params), data)
