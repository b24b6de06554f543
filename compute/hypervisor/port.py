"""The protocol between the flows and a driver, free of any hypervisor's terms.

A driver represents the hosts of one cluster. A ``Machine`` is one VM, existing or to be created,
for one operation; each of its methods looks before it acts, so it may be called again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from common.errors import OperationFailed
from common.failures import Verdict
from common.messages.commands import (
    BackUpVolume,
    Build,
    Command,
    Copy,
    GrowVolume,
    MakeVnet,
    MakeVolume,
    Move,
    Plug,
    PlugVolume,
    RemoveBackup,
    RemoveImage,
    RemoveVnet,
    RemoveVolume,
    RetireTemplate,
    RetypeVolume,
    Size,
    SnapVolume,
    StoreImage,
    StrictGroup,
)
from common.messages.consoles import ConsoleTarget
from common.messages.facts import ClusterFacts, HaService, HostFacts, Inspection, OtherVm, VmFacts
from common.messages.filters import Filter, FilterCheck, Filtered
from common.messages.guests import Diagnostics, GuestTarget, PasswordProblem
from common.messages.inventory import ClusterInventory
from common.messages.measurements import Measured
from common.messages.questions import Measure, SetPassword
from common.messages.queues import Queue
from common.messages.reports import Category, CopiedDisk, MadeVolume
from common.messages.tasks import TaskFacts
from common.resources.local_disks import LocalDisk
from common.resources.states import PowerState
from common.streams import Stream
from compute.hypervisor.disks import Disks
from compute.hypervisor.moving import Moving
from compute.hypervisor.results import Detail as Detail  # noqa: PLC0414
from compute.hypervisor.results import Removal as Removal  # noqa: PLC0414


class HypervisorError(OperationFailed):
    """A hypervisor refused, failed, or didn't answer."""

    def __init__(
        self,
        category: Category,
        message: str,
        *,
        upid: str | None = None,
        log_tail: Sequence[str] = (),
        left: Sequence[str] = (),
        remedy: str | None = None,
        verdict: Verdict | None = None,
        owner_message: str | None = None,
    ) -> None:
        super().__init__(message, category=category.value, upid=upid)
        self.category = category
        self.upid = upid
        self.log_tail = tuple(log_tail)
        self.left = tuple(left)
        """What may not be touched or could not be removed."""
        self.remedy = remedy
        """The one exact command for the operator."""
        self.verdict = verdict
        """Where to continue, if more is known than the category."""
        self.owner_message = owner_message
        """What the owner reads, if more is known than the category; it names no host."""


class Cancelled(Exception):
    """Another operation has overtaken this one: unwind."""


class Abandoned(Exception):
    """The process ends: stop without unwinding; a repeated command continues."""


class Lost(Abandoned):
    """The record has lost the operation: what it made is adopted, if it is a server's."""


class Work(Protocol):
    """What a driver needs of the operation that it works for."""

    @property
    def command(self) -> Command:
        """The latest copy of the command."""

    def report(self, *, upid: str | None = None, **detail: Any) -> None:
        """Report the task's id and other facts of the running step at once."""

    def progress(self, **detail: Any) -> None:
        """Report the running step's progress at once; replaces its last report."""

    def check(self) -> None:
        """Raise Cancelled, Abandoned, or HypervisorError (task_timeout) past the deadline."""

    def check_time(self) -> None:
        """As ``check``, but not Cancelled: for what must be seen to end once begun."""

    def pause(self, seconds: float) -> None:
        """Wait, but not past the deadline or the end of the process; then ``check_time``."""


@dataclass(frozen=True)
class MadeVnet:
    """A vnet that a cluster has."""

    mtu: int
    """The zone's."""
    found: bool = False
    """Whether it was there already."""


class Machine(Protocol):
    """One VM of one server. Every method raises HypervisorError if it can't continue."""

    @property
    def disks(self) -> Disks:
        """Its disks."""

    @property
    def absent(self) -> bool:
        """Whether the VM and its disks were seen absent at the last look."""

    @property
    def foreign(self) -> bool:
        """Whether the VM id was seen to belong to somebody else."""

    @property
    def refused(self) -> bool:
        """Whether the VM id was somebody else's before this operation made anything there."""

    @property
    def anothers(self) -> bool:
        """Whether the VM has all marks of another resource, and none of this one's."""

    @property
    def finished(self) -> bool:
        """Whether an earlier run of this build may have ended well: the VM was seen running."""

    @property
    def stuck(self) -> tuple[str, ...]:
        """What was found under the VM id that only the operator can remove, of any origin."""

    def check_host(self, build: Build) -> Detail:
        """Refuse a host that can't take the server: health, room, leftovers, privileges."""

    def ensure_image(self, build: Build) -> Detail:
        """Ensure that the host can make a disk from the image."""

    def upload_config_drive(self, build: Build, image: Callable[[], bytes]) -> Detail:
        """Upload the config drive, which `image` makes, to where the VM can use it."""

    def create(self, build: Build) -> Detail:
        """Ensure the VM with disk, devices and owner mark; it is not started."""

    def resize_disk(self, build: Build) -> Detail:
        """Grow the root disk to the flavor's size; never shrinks."""

    def find(self, *, to_remove: bool = False) -> Detail:
        """Find the VM and its owner; an absent VM is no error, somebody else's is.

        ``to_remove``: protection from removal is an error as well (``protected``).
        """

    def find_built(self) -> Detail:
        """Find the VM as a build leaves it: the server's, unlocked, configured, running. Raises
        unknown_outcome (fatal) if it isn't so; ``absent`` says whether nothing is there."""

    def start(self) -> Detail:
        """Start the VM and see it running."""

    def leave_unstarted(self) -> Detail:
        """Note at the VM that its build is finished but for the start."""

    def stop(self, graceful_seconds: int) -> Detail:
        """Stop the VM; with seconds over 0 ask the guest first and wait that long."""

    def reboot(self, graceful_seconds: int) -> Detail:
        """Restart; with seconds over 0 ask the guest first and wait that long.

        A saved memory is discarded: a suspended VM boots.
        """

    def pause(self) -> Detail:
        """Pause the VM and see it paused; its memory is kept."""

    def unpause(self) -> Detail:
        """Let a paused VM run and see it running."""

    def suspend(self) -> Detail:
        """Save the VM's memory to disk and see it ended.

        Nothing is touched where that can't be done.
        """

    def resume(self) -> Detail:
        """Start the VM from its saved memory and see it running."""

    def power_state(self) -> PowerState:
        """Return the power state that the hypervisor shows now."""

    def shaped(self, size: Size, former: Size, image_properties: Mapping[str, str]) -> bool:
        """Return whether the VM has this size already; ``former`` says what it may have of
        another one."""

    def shape(self, size: Size, former: Size, image_properties: Mapping[str, str]) -> Detail:
        """Give the stopped VM this size, except the disk's, and verify the configuration."""

    def grow_disk(self, gib: int) -> Detail:
        """Grow the root disk to this size; never shrinks it."""

    def fit_local_disks(self, wanted: tuple[LocalDisk, ...], storage: str | None = None) -> Detail:
        """Make the local disks beside the root disk that it lacks, grow those that are too small,
        and remove a swap disk that is too large; a new one is made.

        ``storage``: for new ones of a new VM; None: where its disks are.
        """

    def moving(self, move: Move) -> Moving:
        """Return its move to another node."""

    def write_filter(self, filter_: Filter) -> Detail:
        """Make what passes its interfaces what is wanted; never opens in between."""

    def plug(self, plug: Plug) -> Detail:
        """Give the VM the interface and see it there, running or not."""

    def unplug(self, mac: str) -> Detail:
        """Unplug the interface and see it gone; if the guest doesn't release it, it remains."""

    def plug_volume(self, plug: PlugVolume) -> Detail:
        """Give the VM the volume and see it there, running or not; nobody else may have it.

        The detail's ``slot`` is where it is, as ``scsi1``.
        """

    def unplug_volume(self, volid: str) -> Detail:
        """Unplug the volume and see it gone; if the guest doesn't release it, it remains."""

    def remove(self) -> Removal:
        """Remove the VM and its disks, if they are provably this server's."""

    def remove_config_drive(self) -> Removal:
        """Remove the config drive's file."""

    def let_go_of_config_drive(self) -> Removal:
        """Remove the config drive's file, unless another VM with the id uses it."""


class DiskCopy(Protocol):
    """The copy of a server's root disk into a template. Methods look before they act."""

    def find(self) -> Detail:
        """Find the server's VM. Raises HypervisorError if it isn't on the node that was named."""

    def make(self) -> CopiedDisk:
        """Copy the disk and make it a template, or find that it was; the VM runs on if it runs.

        Raises HypervisorError.
        """

    def remove(self) -> Removal:
        """Remove what was made, if it is provably the image's."""


class Volume(Protocol):
    """One volume, with what holds it. Methods look before they act, and raise HypervisorError."""

    def make(self, command: MakeVolume) -> MadeVolume:
        """Ensure the volume in its size, with its content; nobody uses it then."""

    def remove(self, command: RemoveVolume) -> Removal:
        """Remove it, if it is provably the volume's and no server names it."""

    def unmake(self) -> Removal:
        """Remove what ``make`` left by half, if it is provably the volume's."""

    def grow(self, command: GrowVolume) -> MadeVolume:
        """Grow it to at least this size, wherever it is used."""

    def retype(self, command: RetypeVolume) -> MadeVolume:
        """Move it to another storage, unless it is there; or only find it and remove what is left
        elsewhere. Return the result, parked.
        """

    def snap(self, command: SnapVolume) -> Detail:
        """Take, remove or bring back a snapshot. A snapshot that is there, or gone, is no error.

        Raises HypervisorError (protected) where a running VM has the volume open and its storage
        can't do it then.
        """

    def unsnap(self, command: SnapVolume) -> Removal:
        """Park the volume; a snapshot that was being taken is removed."""

    def back_up(self, command: BackUpVolume) -> MadeVolume:
        """Make an archive of it, or find that it was made; return the archive."""

    def remove_backup(self, command: BackUpVolume | RemoveBackup) -> Removal:
        """Remove the backup's archives, if they are provably its own; the volume is parked before.

        It need not be there any more.
        """


@dataclass(frozen=True, slots=True)
class GuestUse:
    """What one VM has and uses, as its cluster lists it; of any owner."""

    vmid: int
    running: bool
    vcpus: int
    cpus_used: float
    memory_bytes: int
    memory_used_bytes: int
    received_bytes: int
    sent_bytes: int
    read_bytes: int
    written_bytes: int
    uptime_seconds: int


@dataclass(frozen=True)
class Observation:
    """One refresh of all hosts of a cluster."""

    cluster: ClusterFacts
    hosts: tuple[HostFacts, ...]
    vms: tuple[VmFacts, ...] = ()
    """Every VM that is no template, of any owner, and all else with a VMID of the band."""
    nodes: tuple[str, ...] = ()
    """Nodes that are online."""
    whole: bool = False
    """Whether every node is online, with quorum and privileges: only then absence is certain."""
    locked: frozenset[int] = frozenset()
    """VMs that carry a lock."""
    usable: tuple[str, ...] = ()
    """Nodes that accept work, as far as can be seen: online, with quorum and privileges, and
    they answer."""
    guests: tuple[GuestUse, ...] = ()
    """Where [metrics] guests asks for it."""


class OwnerMark(Protocol):
    """The owner mark of one VM; nothing else of the VM changes. Methods look before they act."""

    def mark(self, smbios_uuid: str | None) -> Detail:
        """Mark the VM as the server's. Raises HypervisorError if it is not the VM that was looked
        at before, has an owner, or is a template or locked."""

    def start(self) -> Detail:
        """Start the VM that its build left unstarted, and see it running."""

    def mark_again(self) -> Detail:
        """Restore the mark of a server's VM after somebody edited it. Raises HypervisorError if
        its SMBIOS UUID isn't the server's, others made it, or it is a template or locked."""

    def unmark(self) -> Detail:
        """Remove the server's mark from the VM; an absent VM has none."""

    def marked(self) -> bool:
        """Return whether it carries the server's mark now."""

    def power_state(self) -> PowerState:
        """Return the power state that the hypervisor shows now."""


class Hypervisor(Protocol):
    """The hosts of one cluster."""

    @property
    def cluster(self) -> str:
        """The cluster's name, as in ``Placed.cluster``."""

    @property
    def nodes(self) -> Collection[str]:
        """The nodes whose agents it has; none: those of the whole cluster."""

    @property
    def has_consoles(self) -> bool:
        """Whether its VMs have consoles at all."""

    def guard_writes(self, guard: Callable[[], None]) -> None:
        """Call this before each write, in its thread; what it raises is passed on."""

    def observe(self) -> Observation:
        """Refresh everything in bulk. Raises HypervisorError when nothing answers."""

    def inventory(self, known: Collection[int], read: Collection[int] = ()) -> ClusterInventory:
        """Return everything that may be ours, in bulk; VMs with ``known`` ids are not looked at
        closely, except those in ``read``.

        Raises HypervisorError when the cluster doesn't answer.
        """

    def group_writer(self, build: Build) -> Callable[[], Detail] | None:
        """Return a function that adds a built server to its strict group in the hypervisor.

        It never raises for what can't be written. None: the hypervisor gets no groups.
        """

    def converge_affinity(
        self, cloud: str, group: StrictGroup, members: Mapping[int, str]
    ) -> None:
        """Make a strict group in the hypervisor have exactly these VMs, {VMID: server's UUID}.

        Only VMs that all marks prove to be the servers' are taken; none if groups are not to
        be written. Raises HypervisorError.
        """

    def machine(self, work: Work) -> Machine:
        """Return the VM that the operation is about."""

    def disk_copy(self, work: Work, command: Copy) -> DiskCopy:
        """Return the copy of a server's root disk that the command is about."""

    def retire_template(self, work: Work, command: RetireTemplate) -> Removal:
        """Remove an image's cached template, if it is ours and no clone depends on it."""

    def store_image(
        self, work: Work, command: StoreImage, pieces: Callable[[], Iterator[bytes]]
    ) -> Detail:
        """Ensure that the cluster has the image's file, and list it; ``pieces`` has its data.

        Raises HypervisorError; then the file may be incomplete.
        """

    def remove_image(self, work: Work, command: RemoveImage) -> Removal:
        """Remove the image's file, if it is provably ours. Raises HypervisorError."""

    def make_vnet(self, work: Work, command: MakeVnet) -> MadeVnet:
        """Ensure that the cluster has the network's vnet, applied. Raises HypervisorError."""

    def remove_vnet(self, work: Work, command: RemoveVnet) -> Removal:
        """Remove the network's vnet, if it is provably its. Raises HypervisorError."""

    def volume(self, work: Work) -> Volume:
        """Return the volume that the operation is about."""

    def inspect(self, vmid: int, node: str | None, server_uuid: str | None) -> Inspection:
        """Look closely at one VM, wherever in the cluster it is; changes nothing.

        ``node`` is where it should be, ``server_uuid`` whose it should be. The VM is absent only
        if neither its node, which must answer, nor the cluster's list shows it. Raises
        HypervisorError when that is not known.
        """

    def look_at_others(self, wanted: Sequence[OtherVm]) -> list[OtherVm]:
        """Return VMs and containers that the record doesn't know with their interfaces.

        Without: what is gone, or can't be read.
        """

    def ha_service(self, vmid: int) -> HaService | None:
        """Return the HA manager's state of the VM; None: the VM is no HA resource.

        Raises HypervisorError.
        """

    def owner_mark(self, work: Work) -> OwnerMark:
        """Return the owner mark of the VM that the operation is about."""

    def steer_migration(self, vmid: int, node: str, server_uuid: str, abort: bool) -> str | None:
        """Abort a live migration that runs, or have it end at once by pausing the guest; return
        why that can't be, or None.

        The migration's own task cleans up, and is waited for by who moves the VM. Raises
        HypervisorError.
        """

    def console_problem(self, target: ConsoleTarget) -> str | None:
        """Return why the VM can have no such console, or None; it need not run.

        Raises HypervisorError when that is not known.
        """

    def open_console(self, target: ConsoleTarget) -> Stream:
        """Connect to a console of a running VM: VNC (RFB 3.8) after the authentication, where
        the client's initialization is next, or what its serial line says.

        Raises HypervisorError.
        """

    def diagnose(self, target: GuestTarget) -> Diagnostics:
        """Return how a VM does now; it need not run.

        Raises HypervisorError, also where the VM isn't the server's.
        """

    def measure(self, wanted: Measure) -> Measured:
        """Return measurements; none that were never recorded. Raises HypervisorError."""

    def list_tasks(self, node: str, limit: int) -> list[TaskFacts]:
        """Return a node's newest tasks, those that run first. Raises HypervisorError."""

    def converge_filter(self, target: GuestTarget, filter_: Filter) -> Filtered:
        """Make what passes a VM's interfaces what is wanted; never opens in between.

        Raises HypervisorError, also where the VM isn't the server's.
        """

    def check_filter(self, target: GuestTarget, filter_: Filter) -> FilterCheck:
        """Return what ``converge_filter`` would change; change nothing.

        Raises HypervisorError, also where the VM isn't the server's.
        """

    def set_password(self, order: SetPassword) -> PasswordProblem | None:
        """Set a user's password through the guest's agent; return why it was not set, or None.

        Raises HypervisorError, also where the VM isn't the server's.
        """

    def ping_guest(self, target: GuestTarget) -> PasswordProblem | None:
        """Ask the guest's agent whether it answers; return why it does not, or None.

        Changes nothing, so whose the VM is was not looked at. Raises HypervisorError.
        """

    def queues(self) -> Mapping[str, tuple[Queue, ...]]:
        """Return what of running operations runs or waits within the driver, by host.

        Asks nothing of the hypervisor; queues with nothing to do are left out.
        """

    def close(self) -> None:
        """Close connections and end threads."""
