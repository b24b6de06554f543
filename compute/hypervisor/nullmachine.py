"""A VM that is kept in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from common.failures import Verdict
from common.messages.commands import Build, Move, Plug, PlugVolume, Size, Swap
from common.messages.filters import Filter
from common.messages.reports import Category
from common.resources.local_disks import LocalDisk
from common.resources.states import PowerState
from common.resources.volumes import ROOT_SLOT
from compute.hypervisor.port import Detail, HypervisorError, Removal, Work


@dataclass
class Vm:
    """One VM's data."""

    server_uuid: str
    node: str
    vcpus: int
    memory_mib: int
    disk_gib: int
    power: PowerState = PowerState.SHUTDOWN
    macs: set[str] = field(default_factory=set)
    volumes: dict[int, str] = field(default_factory=dict)
    """Volume by slot."""
    local_disks: dict[str, int] = field(default_factory=dict)
    """Size in MiB of each disk beside the root disk, by serial number."""
    filter: Filter | None = None
    """What is to pass its interfaces."""
    image_id: str | None = None
    cloud: str = ""
    before: tuple[int, str | None, bool, str | None] | None = None
    """A swap's operation, the VM's former image, whether it is rescued, and the former root volume
    if the swap replaces it."""


class NullMachine:
    """One VM in memory; implements ``port.Machine``."""

    def __init__(self, vms: dict[int, Vm], lock: threading.Lock, work: Work) -> None:
        self._vms, self._lock, self._work = vms, lock, work
        self._vmid = work.command.placed.vmid
        self._finished = False

    @property
    def disks(self) -> NullDisks:
        """Its disks."""
        return NullDisks(self.required(), self._work.command.operation_id)

    @property
    def _vm(self) -> Vm | None:
        return self._vms.get(self._vmid)

    @property
    def absent(self) -> bool:
        """Whether there is no VM with that id."""
        return self._vm is None

    @property
    def foreign(self) -> bool:
        """Whether the id is another server's."""
        vm = self._vm
        return vm is not None and vm.server_uuid != self._work.command.server_uuid

    @property
    def refused(self) -> bool:
        """Whether the id is another server's, so that nothing was made."""
        return self.foreign

    @property
    def finished(self) -> bool:
        """Whether it ran when its build began."""
        return self._finished

    @property
    def stuck(self) -> tuple[str, ...]:
        """Nothing: no VM ever needs an operator here."""
        return ()

    def check_host(self, build: Build) -> Detail:
        """Refuse an id that another server has."""
        vm = self._vm
        self._finished = vm is not None and vm.power == PowerState.RUNNING
        return self.find()

    def ensure_image(self, build: Build) -> Detail:
        """Do nothing: every image is there."""
        return {}

    def upload_config_drive(self, build: Build, image: Callable[[], bytes]) -> Detail:
        """Do nothing: nobody reads it here."""
        return {}

    def create(self, build: Build) -> Detail:
        """Store the VM."""
        self.find()
        vm = Vm(
            build.server_uuid,
            build.placed.node,
            build.vcpus,
            build.memory_mib,
            build.disk_gib,
            macs={nic.mac for nic in build.nics},
            image_id=None if build.image is None else build.image.id,
            cloud=build.cloud,
        )
        with self._lock:
            self._vms.setdefault(self._vmid, vm)
        return {"node": build.placed.node, "vmid": self._vmid}

    def resize_disk(self, build: Build) -> Detail:
        """Do nothing: the size was stored at create."""
        return {"gib": build.disk_gib}

    def find(self, *, to_remove: bool = False) -> Detail:
        """Return whose the id is; nothing is protected from removal."""
        if self.foreign:
            raise HypervisorError(
                Category.STORAGE_CONFLICT, f"VM {self._vmid} is another server's."
            )
        return {"absent": self.absent}

    def find_built(self) -> Detail:
        """See it running."""
        self.find()
        if self.absent or self.power_state() != PowerState.RUNNING:
            text = f"VM {self._vmid} is not as a build leaves it."
            raise HypervisorError(Category.UNKNOWN_OUTCOME, text, verdict=Verdict.FATAL)
        return {"vmid": self._vmid}

    def start(self) -> Detail:
        """Mark it running."""
        return self._power(PowerState.RUNNING)

    def stop(self, graceful_seconds: int) -> Detail:
        """Mark it stopped."""
        return self._power(PowerState.SHUTDOWN)

    def reboot(self, graceful_seconds: int) -> Detail:
        """Mark it running again."""
        return self._power(PowerState.RUNNING)

    def pause(self) -> Detail:
        """Mark it paused."""
        self._require_process()
        return self._power(PowerState.PAUSED)

    def unpause(self) -> Detail:
        """Mark it running."""
        self._require_process()
        return self._power(PowerState.RUNNING)

    def suspend(self) -> Detail:
        """Mark it suspended."""
        if self.power_state() != PowerState.SUSPENDED:
            self._require_process()
        return self._power(PowerState.SUSPENDED)

    def resume(self) -> Detail:
        """Mark it running."""
        if self.power_state() == PowerState.SHUTDOWN:
            raise HypervisorError(
                Category.CONFIGURATION, f"VM {self._vmid} is stopped and has no saved memory."
            )
        return self._power(PowerState.RUNNING)

    def shaped(self, size: Size, former: Size, image_properties: Mapping[str, str]) -> bool:
        """Return whether it has this size."""
        vm = self._vm
        return vm is not None and (vm.vcpus, vm.memory_mib) == (size.vcpus, size.memory_mib)

    def shape(self, size: Size, former: Size, image_properties: Mapping[str, str]) -> Detail:
        """Store the size."""
        vm = self.required()
        vm.vcpus, vm.memory_mib = size.vcpus, size.memory_mib
        return {"vcpus": size.vcpus, "memory_mib": size.memory_mib}

    def grow_disk(self, gib: int) -> Detail:
        """Store the disk's size."""
        vm = self.required()
        vm.disk_gib = max(vm.disk_gib, gib)
        return {"gib": vm.disk_gib}

    def fit_local_disks(self, wanted: tuple[LocalDisk, ...], storage: str | None = None) -> Detail:
        """Store their sizes."""
        self.required().local_disks = {one.serial: one.size_mib for one in wanted}
        return {one.serial: one.size_mib for one in wanted}

    def write_filter(self, filter_: Filter) -> Detail:
        """Store it."""
        self.required().filter = filter_
        return {"ports": len(filter_.ports)}

    def plug_volume(self, plug: PlugVolume) -> Detail:
        """Record that the VM has the volume."""
        vm = self.required()
        with self._lock:
            there = vm.volumes.setdefault(plug.slot, plug.volid)
            users = [
                one
                for one in self._vms.values()
                if one is not vm and plug.volid in one.volumes.values()
            ]
            if there != plug.volid or users:
                if there == plug.volid:
                    del vm.volumes[plug.slot]
                raise HypervisorError(
                    Category.STORAGE_CONFLICT, f"Slot {plug.slot} or the volume is taken."
                )
        return {"volume": plug.volid, "slot": f"scsi{plug.slot}"}

    def unplug_volume(self, volid: str) -> Detail:
        """Remove the volume from the VM's record."""
        vm = self.required()
        with self._lock:
            for slot in [one for one, has in vm.volumes.items() if has == volid]:
                del vm.volumes[slot]
        return {"volume": volid}

    def plug(self, plug: Plug) -> Detail:
        """Store the interface."""
        self.required().macs.add(plug.nic.mac)
        return {"mac": plug.nic.mac}

    def unplug(self, mac: str) -> Detail:
        """Forget the interface."""
        self.required().macs.discard(mac)
        return {"mac": mac}

    def power_state(self) -> PowerState:
        """Return the stored power state."""
        vm = self._vm
        return PowerState.NOSTATE if vm is None else vm.power

    def moving(self, move: Move) -> NullMoving:
        """Return its move to another host."""
        return NullMoving(self, move)

    def remove(self) -> Removal:
        """Delete it."""
        self.find()
        with self._lock:
            vm = self._vms.pop(self._vmid, None)
        return Removal(True, (f"VM {self._vmid}",) if vm else ())

    def remove_config_drive(self) -> Removal:
        """Return an empty removal: there is no config drive."""
        return Removal(True)

    def let_go_of_config_drive(self) -> Removal:
        """Return an empty removal: there is no config drive."""
        return Removal(True)

    def mark(self, smbios_uuid: str | None) -> Detail:
        """Store the owner of a VM that has none."""
        vm = self._vm
        if vm is None or vm.server_uuid not in ("", self._work.command.server_uuid):
            raise HypervisorError(
                Category.STORAGE_CONFLICT, f"VM {self._vmid} is not there, or somebody's."
            )
        vm.server_uuid = self._work.command.server_uuid
        return {}

    def mark_again(self) -> Detail:
        """Do nothing: nobody can have edited the mark."""
        return {}

    def unmark(self) -> Detail:
        """Remove its owner."""
        vm = self._vm
        if vm is not None and not self.foreign:
            vm.server_uuid = ""
        return {}

    def marked(self) -> bool:
        """Return whether it is the server's."""
        return not self.absent and not self.foreign

    def _require_process(self) -> None:
        seen = self.power_state()
        if seen not in (PowerState.RUNNING, PowerState.PAUSED):
            raise HypervisorError(
                Category.CONFIGURATION, f"VM {self._vmid} does not run: it is {seen.name}."
            )

    def _power(self, state: PowerState) -> Mapping[str, str]:
        self.required().power = state
        return {"power_state": state.name}

    def required(self) -> Vm:
        """Return the VM. Raises HypervisorError if there is none."""
        vm = self._vm
        if vm is None:
            raise HypervisorError(Category.VANISHED, f"There is no VM {self._vmid}.")
        return vm


class NullMoving:
    """A move that is done at once; implements ``port.Moving``."""

    def __init__(self, machine: NullMachine, move: Move) -> None:
        self._machine, self._move = machine, move
        self._node = ""

    @property
    def node(self) -> str:
        """The VM's host."""
        return self._node

    def find(self) -> Detail:
        """See where it is, and whose."""
        self._node = ""
        self._machine.find()
        self._node = self._machine.required().node
        return {"node": self._node}

    def check(self) -> Detail:
        """Refuse a VM that does not run for a live move, or is not stopped for an offline one."""
        running = self._machine.power_state() in (PowerState.RUNNING, PowerState.PAUSED)
        if self._node != self._move.target_node and running != self._move.live:
            raise HypervisorError(
                Category.CONFIGURATION,
                "It runs: it can only be moved live."
                if running
                else "It does not run: it can't be moved live.",
            )
        return {}

    def take_drive_out(self) -> Detail:
        """Do nothing: there is no config drive."""
        return {}

    def put_drive_in(self, image: Callable[[], bytes] | None) -> Detail:
        """Do nothing: there is no config drive."""
        return {}

    def carry_out(self) -> Detail:
        """Store the host."""
        self._machine.required().node = self._node = self._move.target_node
        return {"node": self._node}

    def clean_up(self) -> Removal:
        """Return an empty removal: there are no copies."""
        return Removal(True)


class NullDisks:
    """The image of a VM's root disk; implements ``port.Disks``."""

    def __init__(self, vm: Vm, operation_id: int) -> None:
        self._vm, self._operation_id = vm, operation_id

    def check(self, swap: Swap) -> Detail:
        """Refuse what names no image, and no volume either."""
        if swap.image is None and swap.root is None:
            raise HypervisorError(Category.IMAGE_NOT_FOUND, "The swap names no image.")
        return {}

    def swapped(self, swap: Swap) -> bool:
        """Return whether this operation's swap is stored."""
        before = self._vm.before
        return before is not None and before[0] == swap.operation_id

    def has_former(self, *, rescued: bool = False) -> bool:
        """Return whether an image before is stored, of this operation or of a rescue."""
        before = self._vm.before
        return before is not None and bool(
            before[2] if rescued else before[0] == self._operation_id
        )

    def upload(self, swap: Swap, image: Callable[[], bytes]) -> Detail:
        """Do nothing: nobody reads it here."""
        return {}

    def swap(self, swap: Swap) -> Detail:
        """Store the image, and the one before."""
        if not self.swapped(swap):
            self.give_back(rescued=True)
            was = None if swap.root is None else self._vm.volumes.get(ROOT_SLOT)
            self._vm.before = (swap.operation_id, self._vm.image_id, swap.rescue, was)
            self._vm.image_id = None if swap.image is None else swap.image.id
            if swap.root is not None:
                self._vm.volumes[ROOT_SLOT] = swap.root.volid
        return {"image": self._vm.image_id}

    def give_back(self, *, rescued: bool = False) -> Removal:
        """Store the image before."""
        before = self._vm.before
        if before is None or not self.has_former(rescued=rescued):
            return Removal(True)
        gone = f"disk of image {self._vm.image_id}"
        self._vm.image_id, self._vm.before = before[1], None
        if before[3] is not None:
            self._vm.volumes[ROOT_SLOT] = before[3]
        return Removal(True, (gone,))

    def let_go(self) -> Removal:
        """Forget the image before."""
        before = self._vm.before
        if before is not None and before[0] == self._operation_id:
            self._vm.before = None
        return Removal(True)
