"""The protocol between the flows and a driver, free of any hypervisor's terms.

A driver stands for the hosts of one cluster. A ``Machine`` is one VM, or one to be, in the hands
of one operation; each of its methods looks before it acts, so it may be called again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from common.errors import OperationFailed
from common.failures import Verdict
from common.messages.commands import Build, Command, RetireTemplate, StrictGroup
from common.messages.facts import ClusterFacts, HostFacts, Inspection, VmFacts
from common.messages.reports import Category
from common.states import PowerState
from compute.messages import ClusterInventory

#: facts to report about a step that is done
Detail = Mapping[str, Any]


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
        """Where to go on, where more is known of it than the category says."""


class Cancelled(Exception):
    """The operation was overtaken by another one: unwind."""


class Abandoned(Exception):
    """The process ends: stop here, without unwinding; a repeated command goes on."""


class Work(Protocol):
    """What a driver sees of the operation that it works for."""

    @property
    def command(self) -> Command:
        """The command as it was sent last."""

    def report(self, *, upid: str | None = None, **detail: Any) -> None:
        """Report the task's id, and other facts, of the step that runs, at once."""

    def check(self) -> None:
        """Raise Cancelled, Abandoned, or HypervisorError (task_timeout) past the deadline."""

    def check_time(self) -> None:
        """As ``check``, but not Cancelled: where what was begun must be seen to end."""

    def pause(self, seconds: float) -> None:
        """Wait, but not past the deadline or the end of the process; then ``check_time``."""


@dataclass(frozen=True)
class Removal:
    """The result of a removal."""

    gone: bool
    """Seen absent."""
    cleaned: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    remedy: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


class Machine(Protocol):
    """One VM of one server. Every method raises HypervisorError where it can't go on."""

    @property
    def absent(self) -> bool:
        """Whether the VM and its disks were seen absent at the last look."""

    @property
    def foreign(self) -> bool:
        """Whether the VM id was seen in the hands of somebody else."""

    @property
    def refused(self) -> bool:
        """Whether others had the VM id before this operation made anything there."""

    @property
    def stuck(self) -> tuple[str, ...]:
        """What was seen at the VM id that only the operator can remove, whoever began it."""

    def check_host(self, build: Build) -> Detail:
        """Refuse the host where it can't take the server: health, room, leftovers, rights."""

    def ensure_image(self, build: Build) -> Detail:
        """Ensure that the host can make a disk of the image."""

    def upload_config_drive(self, build: Build, image: Callable[[], bytes]) -> Detail:
        """Put the config drive, which `image` makes, where the VM can use it."""

    def create(self, build: Build) -> Detail:
        """Ensure the VM with disk, devices and owner mark; it is not started."""

    def resize_disk(self, build: Build) -> Detail:
        """Grow the root disk to the flavor's size; never shrinks."""

    def find(self, *, to_remove: bool = False) -> Detail:
        """Look where the VM is and whose it is; absent is no error, somebody else's is.

        ``to_remove``: one that is protected from removal is an error as well (``protected``).
        """

    def start(self) -> Detail:
        """Run the VM and see it running."""

    def stop(self, graceful_seconds: int) -> Detail:
        """Stop the VM; with seconds over 0 the guest is asked first, for that long."""

    def reboot(self, graceful_seconds: int) -> Detail:
        """Restart; with seconds over 0 the guest is asked first, for that long."""

    def power_state(self) -> PowerState:
        """Return the power state that the hypervisor shows now."""

    def remove(self) -> Removal:
        """Remove the VM and its disks, if they are provably this server's."""

    def remove_config_drive(self) -> Removal:
        """Remove the config drive's file."""

    def let_go_of_config_drive(self) -> Removal:
        """Remove the config drive's file, unless a VM that has the id now uses it."""


@dataclass(frozen=True)
class Observation:
    """One look at all hosts of a cluster."""

    cluster: ClusterFacts
    hosts: tuple[HostFacts, ...]
    vms: tuple[VmFacts, ...] = ()
    """Every VM that is no template, whoever owns it, and whatever else has a VMID of the band."""
    nodes: tuple[str, ...] = ()
    """Nodes that are online."""
    whole: bool = False
    """Whether every node is online, with quorum and rights: what isn't seen isn't there."""
    locked: frozenset[int] = frozenset()
    """VMs that carry a lock."""
    usable: tuple[str, ...] = ()
    """Nodes that take work, as far as can be seen: online, with quorum and rights, and they
    answer."""


class OwnerMark(Protocol):
    """The owner mark of one VM; nothing else of it is changed. Methods look before they act."""

    def mark(self, smbios_uuid: str | None) -> Detail:
        """Have the VM marked as the server's. Raises HypervisorError where it is not the VM that
        was looked at before, is somebody's, a template, or locked."""

    def mark_again(self) -> Detail:
        """Have a server's VM carry the mark that somebody edited. Raises HypervisorError where
        its SMBIOS UUID isn't the server's, others made it, or it is a template or locked."""

    def unmark(self) -> Detail:
        """Have the VM carry no mark of the server; a VM that isn't there carries none."""

    def marked(self) -> bool:
        """Return whether it carries the server's mark now."""

    def power_state(self) -> PowerState:
        """Return the power state that the hypervisor shows now."""


class Hypervisor(Protocol):
    """The hosts of one cluster."""

    @property
    def cluster(self) -> str:
        """Its name, as in ``Placed.cluster``."""

    def observe(self) -> Observation:
        """Look at everything in bulk. Raises HypervisorError when nothing answers."""

    def inventory(self, known: Collection[int], read: Collection[int] = ()) -> ClusterInventory:
        """All that is there and may be ours, in bulk; VMs of ``known`` ids need no closer look,
        but for those of ``read``.

        Raises HypervisorError when the cluster doesn't answer.
        """

    def group_writer(self, build: Build) -> Callable[[], Detail] | None:
        """What tells the hypervisor of the strict group of a server that was built; it raises
        nothing for what can't be told. None: it is not told of groups."""

    def converge_affinity(
        self, cloud: str, group: StrictGroup, members: Mapping[int, str]
    ) -> None:
        """Have the hypervisor told just these VMs of a strict group, {VMID: server's UUID}, those
        that are the servers' by all marks; none where it shall not be told of groups. Raises
        HypervisorError."""

    def machine(self, work: Work) -> Machine:
        """Return the VM that the operation is about."""

    def retire_template(self, work: Work, command: RetireTemplate) -> Removal:
        """Remove an image's cached template, if it is ours and no clone depends on it."""

    def inspect(self, vmid: int, node: str | None, server_uuid: str | None) -> Inspection:
        """Look closely at one VM, wherever in the cluster it is; changes nothing.

        ``node`` is where it should be, ``server_uuid`` whose it should be. Absent is only what
        its node, alive, and the cluster's list don't have. Raises HypervisorError when that
        can't be told.
        """

    def owner_mark(self, work: Work) -> OwnerMark:
        """Return the owner mark of the VM that the operation is about."""

    def close(self) -> None:
        """Let go of connections and threads."""
