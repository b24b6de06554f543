"""Commands to agents.

A command carries everything that was reserved for it (node, VMID, names, addresses), so an agent
needs no journal and no database: it makes the VMID what is asked, or absent.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Self

from typing_extensions import TypeVar  # with a default

from common.codec import Tagged
from common.messages.filters import Filter
from common.messages.reports import (
    Built,
    Copied,
    Marked,
    Moved,
    Outcome,
    Plugged,
    Removed,
    VmSeen,
    VnetMade,
    VolumeMade,
    VolumeSeen,
    outcome_named_by,
)
from common.resources.local_disks import LocalDisk
from common.resources.states import ResourceType


@dataclass(frozen=True)
class Placed:
    """Where a server's VM is, or is to be: the reservation in the journal."""

    host: str
    """Compute host, unique in the cloud."""
    cluster: str
    node: str
    vmid: int


@dataclass(frozen=True)
class Address:
    """An address of an interface, with what comes with its subnet."""

    ip: str
    cidr: str
    gateway: str | None = None
    dns: tuple[str, ...] = ()
    routes: tuple[tuple[str, str], ...] = ()
    """(destination, next hop) besides the default route."""


@dataclass(frozen=True)
class Nic:
    """One network interface, fully decided."""

    port_id: str
    network_id: str
    network_name: str
    bridge: str
    mac: str
    mtu: int | None = None
    vlan: int | None = None
    ip: str | None = None
    cidr: str | None = None
    gateway: str | None = None
    dns: tuple[str, ...] = ()
    tag: str | None = None
    """The user's name for it, for the guest."""
    routes: tuple[tuple[str, str], ...] = ()
    """(destination, next hop) besides the default route."""
    filtered: bool = False
    """Whether it is plugged in filtered: nothing passes until its rules are there."""
    down: bool = False
    """Whether it is plugged in without a link: its port, or its network, is switched off."""
    second: Address | None = None
    """The IPv6 address of an interface that also has an IPv4 address."""
    more: tuple[Address, ...] = ()
    """Addresses beyond these."""
    network_owner: str = ""
    """The project of its network; empty: the network is a cluster's own."""

    @property
    def ips(self) -> tuple[str, ...]:
        """Return its addresses."""
        second = None if self.second is None else self.second.ip
        found = (self.ip, second, *(one.ip for one in self.more))
        return tuple(ip for ip in found if ip is not None)


@dataclass(frozen=True)
class Image:
    """An image, and its volume in the placed host's cluster."""

    id: str
    name: str
    volid: str
    """The volume, e.g. ``shared:import/debian-12.qcow2``."""
    size_bytes: int = 0
    virtual_size_bytes: int = 0
    """The size of the disk in it; 0: not known."""
    min_disk_gib: int = 0
    checksum: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    template_only: bool = False
    """It was made of a server: there is nothing of it but its template."""
    cd: bool = False
    """An ISO image: it is inserted as a CD where it lies, and never copied."""


@dataclass(frozen=True)
class Template:
    """The cached template to clone from; its VMID is reserved whether or not it exists yet."""

    vmid: int
    node: str
    storage: str


@dataclass(frozen=True)
class GuestFile:
    """A file that a user has the guest write at its first boot."""

    path: str
    contents: str = field(repr=False)
    """Base64, as the user sent it."""


@dataclass(frozen=True)
class ConfigDrive:
    """The content of the config drive (OpenStack's formats)."""

    meta_data: Mapping[str, Any]
    network_data: Mapping[str, Any]
    vendor_data: Mapping[str, Any]
    user_data: str | None = None
    """Base64, as the user sent it."""
    files: tuple[GuestFile, ...] = ()


@dataclass(frozen=True)
class StrictGroup:
    """The server group of a server, if its policy is strict."""

    uuid: str
    apart: bool
    """Anti-affinity; else affinity."""
    max_per_host: int = 1


_NOWHERE = Placed("", "", "", 0)
_NEVER = datetime.datetime.max.replace(tzinfo=datetime.UTC)

#: the class of a command's outcome; of any command: ``Outcome``
O_co = TypeVar("O_co", bound=Outcome, covariant=True, default=Outcome)


@dataclass(frozen=True)
class Command(Tagged, Generic[O_co]):
    """The part common to all commands. May be sent twice: same operation, same answer.

    A plan has the command without the six fields that it begins with; see ``begun``.
    """

    operation_id: int = 0
    attempt: int = 0
    resource_type: ResourceType = ResourceType.SERVER
    resource_id: str = ""
    """What it is about: see ``common.resources.states.ResourceType`` for the form of its ID."""
    placed: Placed = _NOWHERE
    deadline: datetime.datetime = _NEVER
    """When the agent must give up and report so."""
    worker: str = field(default="", kw_only=True)
    """Whom it is sent to: a worker, with the tenure in which it carries the host's agent."""
    cloud: str = field(default="", kw_only=True)
    """The cloud that sends it: its ID is in all that is made, and must be in what is changed."""
    epoch: int = field(default=0, kw_only=True)
    """How far the cloud's record was when it was sent: it is in all that is made."""

    @classmethod
    def outcome(cls) -> type[O_co]:
        """Return the class of its outcome, which its own class names."""
        named: Callable[[Any], type[O_co]] = outcome_named_by
        return named(cls)

    def begun(self, *about: Any) -> Self:
        """Return it with the six fields that it begins with; see ``ledger.Operation.about``."""
        names = (one.name for one in dataclasses.fields(self) if not one.kw_only)
        return dataclasses.replace(self, **dict(zip(names, about, strict=False)))


@dataclass(frozen=True)
class ServerVolume:
    """A volume that a server's VM names; the volume and its holder stay as they are."""

    volume_id: str
    volid: str
    holder: Placed
    """Must have it parked when it is plugged, if its node answers."""
    slot: int
    """The SCSI slot that it gets; 0: it is the root disk."""
    serial: str
    readonly: bool = False


@dataclass(frozen=True, kw_only=True)
class VmParts:
    """What a VM is made of, as it is decided before it is made."""

    storage: str | None = None
    """Storage of the root disk; None: the host's default."""
    image: Image | None = None
    template: Template | None = None
    nics: tuple[Nic, ...] = ()

    def parts(self) -> dict[str, Any]:
        """Return these fields alone."""
        return {one.name: getattr(self, one.name) for one in dataclasses.fields(VmParts)}


@dataclass(frozen=True)
class Build(VmParts, Command[Built]):
    """Create the VM of the record and see it run; on failure leave nothing behind."""

    name: str = ""
    hostname: str = ""
    project_id: str = ""
    user_id: str = ""
    vcpus: int = 1
    memory_mib: int = 0
    disk_gib: int = 0
    config_drive: ConfigDrive | None = None
    tags: tuple[str, ...] = ()
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    group: StrictGroup | None = None
    image_properties: Mapping[str, str] = field(default_factory=dict)
    """As they were when the server was created; both decide the guest's hardware."""
    filter: Filter | None = None
    """What is to pass its interfaces, written before it starts; None: nothing is filtered."""
    volumes: tuple[ServerVolume, ...] = ()
    """Plugged before it starts."""
    local_disks: tuple[LocalDisk, ...] = ()
    """Made empty, where the root disk is; a Swap makes them again, unless it is a rescue."""

    @property
    def boots_from_volume(self) -> bool:
        """Return whether its root disk is a volume: then it has none of its own."""
        return any(one.slot == 0 for one in self.volumes)


@dataclass(frozen=True)
class Swap(Build):
    """Give the VM a new disk made of the image, and a new config drive; the old ones remain
    beside them until an EndSwap. On failure it is as it was."""

    running: bool = False
    """Whether it is to run, before and after."""
    former_properties: Mapping[str, str] = field(default_factory=dict)
    """The image properties that decide the guest's hardware before."""
    rescue: bool = False
    """The new disk is one to boot from, beside the root disk, and the VM is to run in any case."""
    root: ServerVolume | None = None
    """The volume that is the root disk of a rebuilt VM, instead of a new disk: the VM's present
    root volume, or another volume. None: it has a disk of its own."""


@dataclass(frozen=True)
class EndSwap(Command[VmSeen]):
    """Remove what the VM had before a Swap, or give it back and remove what is new."""

    keep: bool = True
    """Whether the VM retains the new disk, and the old one is removed."""
    running: bool = False
    """If the old disk is given back: whether the VM is to run then."""
    rescued: bool = False
    """The old disk is given back because the VM is no longer rescued."""


@dataclass(frozen=True)
class CacheImage(Build):
    """Make the template of a build's image ahead of any build; nothing else is made.

    It is about the template, like ``RetireTemplate``; its VMID is the template's.
    """


@dataclass(frozen=True)
class RetireTemplate(Command[Removed]):
    """Remove an image's cached template, if it is ours and no clone depends on it.

    It is about the template, and about no server.
    """

    image_id: str = ""


@dataclass(frozen=True)
class StoreImage(Command[Outcome]):
    """Give the cluster what a user uploaded as an image, and see it listed with its size.

    It is about the image: there is no VM.
    """

    volid: str = ""
    """The volume that it becomes."""
    url: str = ""
    """Where it is fetched, by ranges of at most 4 MiB."""
    token: str = field(default="", repr=False)
    size_bytes: int = 0
    sha512: str = ""


@dataclass(frozen=True)
class RemoveImage(Command[Removed]):
    """Remove the file of an uploaded image, and see it gone; also about the image."""

    volid: str = ""


@dataclass(frozen=True)
class MakeVnet(Command[VnetMade]):
    """Give the cluster the SDN vnet of a network, applied on its nodes.

    It is about the network: there is no VM.
    """

    vnet: str = ""
    zone: str = ""
    vni: int = 0
    project_id: str = ""
    """The network's owner."""


@dataclass(frozen=True)
class RemoveVnet(Command[Removed]):
    """Remove the SDN vnet of a network, and see it gone; about the network, too."""

    vnet: str = ""
    zone: str = ""


@dataclass(frozen=True)
class Destroy(Command[Removed]):
    """Remove the VM if it is provably ours: stop, purge, see config and volumes gone."""

    graceful: bool = False
    drive_only: bool = False
    """Only the config drive, and only if no VM with the VMID, of any owner, uses it."""
    stopped_on: str | None = None
    """Only a VM that is still stopped on this node, and only volumes that no VM's
    configuration names. None: wherever it is, running or not."""
    unrestored_since: datetime.datetime | None = None
    """Only a VM that nobody has restored from a backup since then. None: that one, too."""
    left_behind: str | None = None
    """With ``drive_only``: only this config drive on a storage of the placed node's own, which a
    move left there, and only while the VM is on another node with a drive of its own."""
    build: int = 0
    """The operation of the build that left it there, and continues at another place; 0: none."""
    build_attempt: int = 0
    """The attempt that left it."""

    @property
    def of_server(self) -> bool:
        """Return whether the server is removed, which ends all other work on it."""
        return self.left_behind is None and not self.build

    @property
    def ends_builds(self) -> bool:
        """Return whether it ends builds of the server at its place."""
        return self.left_behind is None


class PowerAction(enum.StrEnum):
    """The action of a Power command."""

    START = "start"
    STOP = "stop"
    REBOOT_SOFT = "reboot_soft"
    REBOOT_HARD = "reboot_hard"
    PAUSE = "pause"
    UNPAUSE = "unpause"
    SUSPEND = "suspend"
    RESUME = "resume"


@dataclass(frozen=True)
class Power(Command[VmSeen]):
    """Bring the VM to a power state and see it there."""

    action: PowerAction = PowerAction.START
    began_at: datetime.datetime | None = None
    """When its operation began; an operation older than another of the server is too late."""


@dataclass(frozen=True)
class Size:
    """What a flavor gives a VM, but for its disk."""

    vcpus: int
    memory_mib: int
    extra_specs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Shape(Command[VmSeen]):
    """Stop the VM, give it this size, and start it if it is to run; on failure as it was."""

    size: Size = Size(1, 0)
    former: Size = Size(1, 0)
    running: bool = False
    """Whether it is to run, before and after."""
    image_properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Grow(Command[VmSeen]):
    """Grow the root disk to this size; never shrinks it. Fit the other local disks."""

    disk_gib: int = 0
    local_disks: tuple[LocalDisk, ...] | None = None
    """Wanted disks: missing ones are made, smaller ones grown, a swap disk also made again. None:
    unchanged."""


@dataclass(frozen=True)
class Move(Command[Moved]):
    """Move the VM to another node of its cluster: live if it runs, else offline.

    ``placed`` is where it is recorded. Disks on storages of the node's own are copied. On failure
    it is where it was, unless the outcome says otherwise (``Moved.node``): once its
    configuration is on the target, it remains there. A repeated command looks and continues.
    """

    target_node: str = ""
    live: bool = False
    """Whether it is moved while it runs (or is paused); else it must be stopped."""
    target_storage: str | None = None
    """Storage on the target for disks that are copied; None: the storage of the same name."""
    copy_disks: bool | None = None
    """Whether disks have to be copied: True: refuse a VM that needs no copy; False: refuse a
    VM that needs one; None: as needed."""
    config_drive: ConfigDrive | None = None
    """Its config drive's content, made again on the target where the present one is on a storage
    of the node's own; None: it has none."""
    settle: bool = False
    """Don't move it: wait until no migration runs, see on which of the two nodes it is, and put
    right there what an interrupted Move left. For a Move whose outcome got lost or was undone."""


@dataclass(frozen=True)
class Plug(Command[VmSeen]):
    """Give a VM this interface, or take it away. It is found by its MAC address."""

    nic: Nic = Nic("", "", "", "", "")
    on: bool = True
    slot: int = 0
    """Where it is put, if that is free."""
    size: Size = Size(1, 0)
    """The server's, which decides the kind of its interfaces."""
    image_properties: Mapping[str, str] = field(default_factory=dict)
    filter: Filter | None = None
    """What is to pass the server's interfaces then; None: nothing of it changes."""


@dataclass(frozen=True)
class Copy(Command[Copied]):
    """Make an image of a server's root disk, or of a volume: a template at ``placed``, on the
    node of the server or of the volume's holder.

    The server runs on if it runs. On failure leave nothing behind.
    """

    source_vmid: int = 0
    """The VMID of the server's VM, or of the holder."""
    storage: str = ""
    image_id: str = ""
    image_name: str = ""
    backup: bool = False
    """Only for the name of the step."""
    volid: str = ""
    """Of a volume: its disk, which the VM with ``source_vmid`` holds. Empty: of a server."""
    project_id: str = ""
    """The image's owner; and the user who makes it."""
    user_id: str = ""


@dataclass(frozen=True)
class Mark(Command[Marked]):
    """Set the owner mark of an existing VM, or remove it. Nothing else is changed."""

    on: bool = True
    smbios_uuid: str | None = None
    """The SMBIOS UUID that the VM had when it was looked at; None: it has none."""
    again: bool = False
    """Restore a mark that was edited, if the SMBIOS UUID is the server's and no task on record
    shows that others made the VM."""
    project_id: str = ""
    user_id: str = ""
    nics: tuple[Nic, ...] = ()
    """The interfaces that the record has."""
    start: bool = False
    """Also start the VM, which its build left unstarted."""


@dataclass(frozen=True)
class VolumeUser:
    """A server's VM that has, or had, a volume."""

    server_uuid: str
    node: str
    vmid: int


@dataclass(frozen=True)
class VolumeSource:
    """What a new volume's content is copied from."""

    volid: str
    """A file of content ``import``, or the disk of another holder on the same node."""
    volume_id: str = ""
    """Whose the other holder is, where a snapshot of it is copied."""
    vmid: int = 0
    snapshot: str | None = None
    """Name of the holder's snapshot; None: the volume as it is."""
    archive: bool = False
    """Whether ``volid`` is a backup of a holder; then the fields of a holder are not set."""


@dataclass(frozen=True)
class MakeVolume(Command[VolumeMade]):
    """Make the holder of a volume with its disk, and park the disk; on failure leave nothing.

    As in all commands about a volume, ``placed`` is its holder.
    """

    name: str = ""
    size_gib: int = 0
    storage: str = ""
    source: VolumeSource | None = None
    """None: an empty volume."""
    project_id: str = ""
    """For whom it is made, as is the user."""
    user_id: str = ""
    snapshot_of: str = ""
    """The volume whose snapshot it is; empty: it is a volume."""


@dataclass(frozen=True)
class RemoveVolume(Command[Removed]):
    """Remove a volume with its holder, and see both gone; none that any server's VM names."""

    volid: str | None = None
    """None: it isn't known to be made."""
    users: tuple[VolumeUser, ...] = ()
    """Servers that had it last: their configurations are read before."""


@dataclass(frozen=True)
class GrowVolume(Command[VolumeSeen]):
    """Grow a volume to this size, in its holder or in its server's VM; never shrinks."""

    volid: str = ""
    size_gib: int = 0
    user: VolumeUser | None = None
    """The server that it is attached to; None: it is not attached."""


@dataclass(frozen=True)
class RetypeVolume(Command[VolumeSeen]):
    """Move a volume's disk to another storage of its node; its holder does not change.

    On failure it may be in either place: the same command with ``settle`` says where it is.
    """

    volid: str = ""
    storage: str = ""
    """The target storage."""
    users: tuple[VolumeUser, ...] = ()
    """Servers that had it: the old disk is deleted only if their VMs don't name it."""
    settle: bool = False
    """Move nothing: see where it is, and remove what is left beside it."""


class SnapshotVerb(enum.StrEnum):
    """What is done with a volume, or a snapshot of it, in its holder."""

    TAKE = "take"
    REMOVE = "remove"
    REVERT = "revert"
    PARK = "park"  #: nothing but that the disk rests


@dataclass(frozen=True)
class SnapVolume(Command[Removed]):
    """Have Proxmox VE take a snapshot of a volume, remove one, or bring the volume back to it."""

    verb: SnapshotVerb = SnapshotVerb.TAKE
    volid: str = ""
    storage_way: str = ""
    """A ``SnapshotWay``: whether it may be done while a running VM has the volume."""
    name: str = ""
    """2 to 40 characters; the first is a letter."""
    description: str = ""
    user: VolumeUser | None = None
    """The server that the volume is attached to; None: it is not attached."""


@dataclass(frozen=True)
class BackUpVolume(Command[VolumeMade]):
    """Have Proxmox VE make an archive of a volume at rest; on failure leave none.

    It is about the volume. The outcome has the archive as its volume.
    """

    backup_id: str = ""
    volid: str = ""
    storage: str = ""
    """The storage of the archive."""
    project_id: str = ""
    """For whom it is made, as is the user."""
    user_id: str = ""
    size_gib: int = 0
    """The volume's."""


@dataclass(frozen=True)
class RemoveBackup(Command[Removed]):
    """Remove what there is of a backup, and see it gone.

    It is about the backup; ``placed`` is the holder that was backed up, which may be gone.
    """

    storage: str = ""
    archive: str | None = None
    """None: it isn't known to be made."""
    volume_id: str | None = None
    """Whose holder is parked before; None: it was seen parked."""


@dataclass(frozen=True)
class PlugVolume(Command[Plugged]):
    """Plug a volume into a server's VM, or unplug it; the volume and its holder are unchanged.

    It is about the server, and ``placed`` is its VM.
    The volume is found by its volid. If the guest doesn't release it, it remains plugged.
    """

    volume_id: str = ""
    volid: str = ""
    holder: Placed | None = None
    """Must have it parked when it is plugged, if its node answers."""
    on: bool = True
    slot: int = 1
    """The SCSI slot that it gets."""
    others: tuple[int, ...] = ()
    """Those that it may get instead where something has that one; refused without one."""
    serial: str = ""
    readonly: bool = False
