"""The VM of a server: implements ``port.Machine`` with Proxmox VE's calls."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from common.failures import Verdict
from common.messages.commands import Build, Destroy, Move, Plug, PlugVolume, Power, Size
from common.messages.filters import Filter
from common.messages.reports import Category
from common.resources.local_disks import LocalDisk
from common.resources.states import PowerState
from compute.hypervisor.port import Detail, HypervisorError, Removal, Work
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster import quorum
from compute.hypervisor.proxmox.cluster.locks import StuckError
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.cluster.vmid import Config, ForeignError, Vm
from compute.hypervisor.proxmox.storage import volumes
from compute.hypervisor.proxmox.vm import (
    attachment,
    config_drive,
    copies,
    filtering,
    half_created,
    host_checks,
    interfaces,
    local_disks,
    owner_mark,
    power,
    removal,
    root_disk,
    saved,
)
from compute.hypervisor.proxmox.vm.creation import Creation
from compute.hypervisor.proxmox.vm.disk_swap import VmDisks
from compute.hypervisor.proxmox.vm.moving import ProxmoxMoving
from compute.hypervisor.proxmox.vm.templates import Templates
from compute.hypervisor.proxmox.vmconfig import disks, guest, hardware, marks, power_states
from compute.hypervisor.proxmox.vmconfig import size as sizes


class ProxmoxMachine:
    """One VM of one server, for one operation."""

    def __init__(self, shared: Shared, templates: Templates, work: Work) -> None:
        self._shared, self._work = shared, work
        command = work.command
        mark = marks.of_command(command)
        self._vm = Vm(shared, work, command.placed.vmid, command.placed.node, mark)
        self._absent = False
        self._foreign = self._anothers = False
        self._refused = False
        self._finished = False
        self._proven = False
        self._suspended = False
        self._stuck: tuple[str, ...] = ()
        #: this operation saw the id free of a config, and these storages free of its volumes
        self._clear: volumes.Seen | None = None
        self._creation = Creation(self._vm, templates, self._see)
        self._root = ""
        self._found: Config | None = None
        """Its configuration at the last look, proven ours."""

    @property
    def disks(self) -> VmDisks:
        """Its disks."""
        return VmDisks(self._vm)

    @property
    def absent(self) -> bool:
        """Whether VM and volumes were seen absent at the last look."""
        return self._absent

    @property
    def foreign(self) -> bool:
        """Whether the VMID was seen to belong to somebody else."""
        return self._foreign

    @property
    def refused(self) -> bool:
        """Whether the VMID was somebody else's before this operation made anything there."""
        return self._refused

    @property
    def anothers(self) -> bool:
        """See ``port.Machine``."""
        return self._anothers

    @property
    def finished(self) -> bool:
        """Whether an earlier run of this build has made the VM and seen it running."""
        return self._finished

    @property
    def stuck(self) -> tuple[str, ...]:
        """What has the VMID and only root can remove."""
        return self._stuck

    # --- build

    def check_host(self, build: Build) -> Detail:
        """See ``port.Machine``; continues with what is already there of this server."""
        config = self._look_around()
        self._finished = self._is_finished(config)
        storage = host_checks.host(self._shared, build, self._vm.node)
        unseen = self._clear.unseen if self._clear is not None else ()
        return {
            "node": build.placed.node,
            "vmid": self._vm.vmid,
            "storage": storage.name,
            "available_gib": storage.available >> 30,
            "found": "nothing" if config is None else "the server's VM",
            **({"unseen": list(unseen)} if unseen else {}),
        }

    def ensure_image(self, build: Build) -> Detail:
        """See ``port.Machine``."""
        return self._creation.ensure_image(build)

    def upload_config_drive(self, build: Build, image: Callable[[], bytes]) -> Detail:
        """Upload the ISO under the server's own name; a repeated upload replaces it."""
        iso = image()
        volid = config_drive.upload(self._vm, build.resource_id, iso)
        self._creation.config_drive = volid
        return {"volume": volid, "bytes": len(iso)}

    def create(self, build: Build) -> Detail:
        """Clone or import, then configure; the marks are there from the first moment."""
        storage = host_checks.storage(self._shared, self._vm.node, build.storage)
        self._absent = False
        config = None if self._clear is not None else self._see()
        if config is None:
            self._creation.make(build, storage)
            config = self._see()
        if config is None:
            raise HypervisorError(
                Category.UNKNOWN_OUTCOME, f"{self._vm} is not there after its task ended well."
            )
        self._root = disks.root(config)
        if marks.is_building(config):
            self._creation.configure(build, config, storage)
        return {"node": self._vm.node, "vmid": self._vm.vmid, "way": self._creation.way.value}

    def resize_disk(self, build: Build) -> Detail:
        """Grow the root disk. Raises image_corrupt if it is larger than the flavor's."""
        wanted = build.disk_gib << 30
        present = disks.size_bytes(self._root)
        if not build.boots_from_volume:
            host_checks.fits(build.image, present, build.disk_gib)
        if present >= wanted:
            return {"bytes": present}
        storage = host_checks.storage(self._shared, self._vm.node, build.storage)
        volumes.grow_root(self._vm, storage.name, build.disk_gib)
        return {"bytes": wanted, "before": present}

    # --- any operation

    def find(self, *, to_remove: bool = False) -> Detail:
        """Return where the VM is. Raises for another's, or (``to_remove``) a protected one."""
        config = self._see()
        if config is None:
            self._absent = not volumes.of_vm(self._vm)
            return {"node": self._vm.node, "found": "nothing"}
        if to_remove:
            removal.require_unprotected(self._vm, config)
            quorum.require(self._vm)
        # A VM that may be removed only while stopped is left as it is.
        if self._suspended and removal.stopped_on(self._vm) is None and self._vm.running():
            saved.complete(self._vm)
            self._suspended = False
        return {"node": self._vm.node, "found": "the server's VM", "lock": config.get("lock")}

    def find_built(self) -> Detail:
        """See ``port.Machine``."""
        config = self._see()
        if config is None:
            self._absent = not volumes.of_vm(self._vm)
        if not self._is_finished(config):
            seen = "not there" if config is None else "not as a build leaves it: running"
            raise HypervisorError(
                Category.UNKNOWN_OUTCOME,
                f"{self._vm} is {seen}. It was not touched.",
                verdict=Verdict.FATAL,
            )
        return {"node": self._vm.node, "found": "the server's VM", "power_state": "RUNNING"}

    def start(self) -> Detail:
        """Start it and see it running. Raises HypervisorError for one without its root disk."""
        self._require_root()
        try:
            power.start(self._vm, look_first=self._clear is None)
        except ApiError as error:
            raise root_disk.explained(self._vm, error) from error
        return {"power_state": PowerState.RUNNING.name}

    def leave_unstarted(self) -> Detail:
        """Note in its description that only the start is missing."""
        owner_mark.note_unstarted(self._vm, on=True)
        return {"node": self._vm.node, "set": ["description"]}

    def stop(self, graceful_seconds: int) -> Detail:
        """Stop it; an absent VM counts as stopped."""
        config = self._vm.look()
        if config is not None and self._vm.unlocked(config) is not None:
            power.stop(self._vm, graceful_seconds)
        return {"power_state": PowerState.SHUTDOWN.name}

    def reboot(self, graceful_seconds: int) -> Detail:
        """Restart it. Raises HypervisorError for one without its root disk."""
        self._require_root()
        if self._suspended:
            saved.discard(self._vm)
        try:
            return {"reboot": power.reboot(self._vm, graceful_seconds)}
        except ApiError as error:
            raise root_disk.explained(self._vm, error) from error

    def pause(self) -> Detail:
        """Pause it."""
        saved.pause(self._vm)
        return {"power_state": PowerState.PAUSED.name}

    def unpause(self) -> Detail:
        """Let it run."""
        saved.unpause(self._vm)
        return {"power_state": PowerState.RUNNING.name}

    def suspend(self) -> Detail:
        """Save its memory to disk."""
        saved.suspend(self._vm)
        return {"power_state": PowerState.SUSPENDED.name}

    def resume(self) -> Detail:
        """Start it from its saved memory."""
        saved.resume(self._vm)
        return {"power_state": PowerState.RUNNING.name}

    def shaped(self, size: Size, former: Size, image_properties: Mapping[str, str]) -> bool:
        """Return whether its configuration has this size."""
        config = self._vm.look()
        return config is not None and not self._changes(config, size, former, image_properties)

    def shape(self, size: Size, former: Size, image_properties: Mapping[str, str]) -> Detail:
        """Change the configuration, bound to the digest of the configuration proven ours."""

        def call() -> Any:
            config = self._vm.fence()
            values = self._changes(config, size, former, image_properties)
            path = f"{self._vm.path}/config"
            return self._shared.client.post(path, digest=config["digest"], **values)

        self._vm.converge(lambda: self.shaped(size, former, image_properties), call)
        if not self.shaped(size, former, image_properties):
            raise HypervisorError(
                Category.UNKNOWN_OUTCOME, f"{self._vm} has another size after it was changed."
            )
        return {"vcpus": size.vcpus, "memory_mib": size.memory_mib}

    def grow_disk(self, gib: int) -> Detail:
        """Grow the root disk, running or not."""
        root = disks.root(self._vm.look() or {})
        present = disks.size_bytes(root)
        if present < gib << 30:
            volumes.grow_root(self._vm, root.partition(":")[0], gib)
        return {"bytes": max(present, gib << 30), "before": present}

    def fit_local_disks(self, wanted: tuple[LocalDisk, ...], storage: str | None = None) -> Detail:
        """Compare with the configuration, and change what differs."""
        command = self._work.command
        bounds = guest.disk_limits(guest.of(command)) if isinstance(command, Build) else None
        return local_disks.fit(self._vm, wanted, storage, bounds)

    def write_filter(self, filter_: Filter) -> Detail:
        """Write the VM's own firewall."""
        with self._vm.locks_explained():
            done = filtering.converge(self._shared.client, self._vm.path, self._vm.fence, filter_)
        return dataclasses.asdict(done)

    def plug(self, plug: Plug) -> Detail:
        """Plug it where it is wanted, or into the first free slot."""
        size = plug.size
        has = guest.of_size(size.vcpus, size.memory_mib, size.extra_specs, plug.image_properties)
        text = hardware.net(plug.nic, *guest.network(has, size.vcpus), guest.rate(has))
        slot = interfaces.plug(self._vm, plug.nic, text, plug.slot)
        return {"mac": plug.nic.mac, "slot": slot}

    def unplug(self, mac: str) -> Detail:
        """Unplug it, wherever it is."""
        interfaces.unplug(self._vm, mac)
        return {"mac": mac}

    def plug_volume(self, plug: PlugVolume) -> Detail:
        """Name the volume in its slot, if it is parked in its holder."""
        return {"volume": plug.volid, "slot": attachment.plug(self._vm, plug)}

    def unplug_volume(self, volid: str) -> Detail:
        """Remove the volume from the configuration."""
        attachment.unplug(self._vm, volid)
        return {"volume": volid}

    def _changes(
        self, config: Config, size: Size, former: Size, image_properties: Mapping[str, str]
    ) -> dict[str, str]:
        cpu_type = self._shared.settings.cpu_type
        return sizes.changes(config, size, former, image_properties, cpu_type)

    def power_state(self) -> PowerState:
        """Return the state of status/current, once the VM was proven the server's."""
        if not self._proven:
            return PowerState.NOSTATE
        return power_states.current(self._vm.status())

    def moving(self, move: Move) -> ProxmoxMoving:
        """Return its move to another node."""
        return ProxmoxMoving(self._vm, move, self._see)

    def remove(self) -> Removal:
        """Remove VM and disks."""
        if self._foreign:
            # Our create found somebody else's VM: there is nothing of ours.
            return Removal(True)
        try:
            removal_ = removal.remove(self._vm, self._clear)
        except StuckError as error:
            half_created.name_disks(self._vm, error)
            self._stuck = error.left
            raise
        self._absent = removal_.gone
        return removal_

    def remove_config_drive(self) -> Removal:
        """Delete the ISO by its name, on every storage where this driver may have put it."""
        return config_drive.remove(self._vm, self._work.command.resource_id)

    def let_go_of_config_drive(self) -> Removal:
        """Delete the ISO of a server that doesn't own this VM, or the ISO that a move left."""
        command = self._work.command
        if isinstance(command, Destroy) and command.left_behind is not None:
            return copies.remove_drive(self._vm, self._see(), command)
        return config_drive.let_go(self._vm, self._work.command.resource_id)

    # --- inner

    def _require_root(self) -> None:
        """Raise HypervisorError (disk_lost) if a power action found no root disk."""
        if isinstance(self._work.command, Power) and self._found is not None:
            root_disk.require(self._vm, self._found)

    def _look_around(self) -> Config | None:
        """Look at VM and volumes first, so that a host refused later is known to hold nothing."""
        config = self._look_before(recent=True)
        if config is not None:
            return config
        seen = volumes.everywhere(self._vm)
        strays = volumes.strays(self._vm, seen)
        if strays is None:
            self._absent, self._clear = True, seen
            return None
        # The snapshot may be older than what an earlier run began on another node.
        config = self._look_before(recent=False)
        if config is None:
            self._foreign = True
            # What an earlier run of ours left is no proof that others had it first.
            self._refused = not self._may_be_ours(seen.volumes)
            raise strays
        return config

    def _look_before(self, *, recent: bool) -> Config | None:
        try:
            return self._see(recent=recent)
        except StuckError:
            # An earlier run may have begun it; its drive can be removed.
            config_drive.remove(self._vm, self._work.command.resource_id)
            raise
        except ApiError as error:
            if error.category is Category.NODE_UNHEALTHY:
                # The node doesn't answer, but the cluster's list has the VMs of all nodes.
                self._absent = self._shared.listed(self._vm.vmid) is None
            raise

    def _is_finished(self, config: Config | None) -> bool:
        """Return whether an earlier run may have ended well: that is seen running."""
        if config is None or marks.is_building(config):
            return False
        return power_states.current(self._vm.status()) == PowerState.RUNNING

    def _may_be_ours(self, found: list[volumes.Volume]) -> bool:
        """Return whether an earlier run of this operation may have made one of these."""
        try:
            return bool(volumes.made_by_us(self._vm, found))
        except ApiError:
            return True

    def _see(self, *, recent: bool = False) -> Config | None:
        """Return the configuration, if it is ours and not locked."""
        self._proven = False
        try:
            config = self._vm.locate(recent=recent)
            ours = None if config is None else self._vm.ours(config)
            if config is not None and ours is None:
                # It was moved, or removed, while its lock was waited for.
                config = self._vm.locate()
                ours = None if config is None else self._vm.ours(config)
        except ForeignError as error:
            self._foreign, self._refused, self._stuck = True, True, ()
            self._anothers = error.anothers
            raise
        except StuckError as error:
            half_created.name_disks(self._vm, error)
            self._foreign, self._stuck = False, error.left
            raise
        except HypervisorError as error:
            # The owner was checked before the lock.
            self._proven = error.category is Category.LOCK
            raise
        self._proven, self._found = ours is not None, ours
        self._suspended = ours is not None and "lock" in ours
        return ours
