"""The VM that holds a volume: seen and proven, its disk plugged for an operation, and parked."""

from __future__ import annotations

from typing import Any

from common.messages.commands import Command, MakeVolume, Placed, VolumeUser
from common.messages.reports import Category
from compute.hypervisor.only_look import may_only_look
from compute.hypervisor.port import HypervisorError, Work
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.cluster.vmid import Config, Vm
from compute.hypervisor.proxmox.storage import one_volume
from compute.hypervisor.proxmox.vmconfig import disks, marks, volumes
from compute.hypervisor.proxmox.vmconfig.marks import (
    Mark,
    holder_lines,
    server_mark,
    volume_mark,
)

#: looks for a server's VM
_LOOKS = 2


class Holder:
    """The holder that a command is about; ``vm`` is its VM."""

    def __init__(self, shared: Shared, work: Work, vm: Vm) -> None:
        self._shared, self._work, self.vm = shared, work, vm

    @classmethod
    def of_command(cls, shared: Shared, work: Work) -> Holder:
        """Return that of the volume which the command is about."""
        command: Command = work.command
        about: tuple[str, ...] = ()
        if isinstance(command, MakeVolume):
            about = holder_lines(command)
        mark = volume_mark(command.resource_id, command.cloud, about)
        return cls.of(shared, work, command.placed, mark)

    @classmethod
    def of(cls, shared: Shared, work: Work, placed: Placed, mark: Mark) -> Holder:
        """Return the one there with this mark."""
        return cls(shared, work, Vm(shared, work, placed.vmid, placed.node, mark))

    # --- looking

    def seen(self) -> Config | None:
        """Return its configuration, after waiting for the task that has its lock; None: gone."""
        config = self.vm.locate()
        return None if config is None else self.vm.ours(config)

    def required(self) -> Config:
        """Return its configuration. Raises HypervisorError if it is gone or half made."""
        config = self.seen()
        if config is None or marks.is_building(config):
            raise HypervisorError(Category.VANISHED, f"{self.vm} isn't there any more.")
        return config

    def disk(self, config: Config) -> str | None:
        """Return the volume that it has; None: it has none."""
        return volumes.held(config, self.vm.vmid)

    def having(self, volid: str) -> Config:
        """Return its configuration. Raises HypervisorError unless it has this volume."""
        config = self.required()
        disk = self.disk(config)
        if disk != volid:
            raise HypervisorError(
                Category.VANISHED, f"{self.vm} has {disk or 'no disk'}, not {volid}."
            )
        return config

    def server(self, user: VolumeUser) -> Vm:
        """Return the VM of a server that has the volume, proven the server's."""
        mark = server_mark(user.server_uuid, self._work.command.cloud)
        vm = Vm(self._shared, self._work, user.vmid, user.node, mark)
        # It may be moved while the lock of that is waited for.
        for _ in range(_LOOKS):
            config = vm.locate()
            if config is None:
                break
            if vm.ours(config) is not None:
                return vm
        raise HypervisorError(Category.VANISHED, f"{vm} isn't there any more.")

    # --- the disk

    def park(self) -> None:
        """Unplug the disk and protect the holder, in one call."""
        vm = self.vm

        def done() -> bool:
            return volumes.parked(vm.look() or {}, vm.vmid)

        def call() -> Any:
            config = vm.fence()
            values: dict[str, Any] = {"protection": 1, "digest": config["digest"]}
            if volumes.volid(config.get(volumes.PLUGGED)):
                values["delete"] = volumes.PLUGGED
            return self._shared.client.post(f"{vm.path}/config", **values)

        vm.converge(done, call)
        if not done():
            raise HypervisorError(Category.UNKNOWN_OUTCOME, f"The disk of {vm} isn't parked.")

    def plug(self, disk: str) -> None:
        """Plug the disk into its holder, which isn't protected then."""
        vm = self.vm

        def done() -> bool:
            config = vm.look() or {}
            return volumes.slot_of(config, disk) is not None and not protected(config)

        def call() -> Any:
            config = vm.fence()
            values = {"protection": 0, "digest": config["digest"]}
            if volumes.slot_of(config, disk) is None:
                values[volumes.PLUGGED] = disk
            return self._shared.client.post(f"{vm.path}/config", **values)

        vm.converge(done, call)

    def bytes_of(self, disk: str) -> int:
        """Return the disk's size, as its storage lists it; else it is plugged, which shows it.

        While nothing may be changed it may be less than what is returned.
        """
        listed = one_volume.listed_bytes(self.vm, disk, at_most=may_only_look())
        if listed:
            return listed
        self.plug(disk)
        config = self.vm.look() or {}
        slot = volumes.slot_of(config, disk)
        return disks.size_bytes(str(config[slot])) if slot is not None else 0

    def unprotect(self) -> None:
        """Have the holder removable."""
        vm = self.vm

        def call() -> Any:
            config = vm.fence()
            path = f"{vm.path}/config"
            return self._shared.client.post(path, protection=0, digest=config["digest"])

        vm.converge(lambda: not protected(vm.look() or {}), call)


def protected(config: Config) -> bool:
    """Return whether Proxmox VE protects a VM and its disks from removal."""
    return str(config.get("protection", "0")) == "1"
