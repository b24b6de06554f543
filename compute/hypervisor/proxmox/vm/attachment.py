"""Volumes of a server's VM: named in its configuration, and nothing else; found by their volid."""

from __future__ import annotations

from common.messages.commands import Placed, PlugVolume
from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.vmid import Vm
from compute.hypervisor.proxmox.vm import devices
from compute.hypervisor.proxmox.vm.devices import Device
from compute.hypervisor.proxmox.vmconfig import disks, marks, volumes
from compute.hypervisor.proxmox.vmconfig.marks import volume_mark


def device(volid: str) -> Device:
    """Return the disk that is a volume."""
    return Device(volumes.SCSI, lambda value: volumes.volid(value) == volid, "volume")


def plug(vm: Vm, command: PlugVolume) -> str:
    """Plug it, unless it is plugged; return its slot. The root disk is what the VM boots from.

    Raises HypervisorError if its holder doesn't have it parked, and what ``devices.plug`` does.
    """
    wanted = device(command.volid)
    now = devices.look(vm, wanted)
    if not now.plugged:
        require_parked(vm, command.volume_id, command.volid, command.holder, command.cloud)
    text = volumes.reference(command.volid, command.serial, readonly=command.readonly)
    slots = [f"scsi{slot}" for slot in (command.slot, *command.others)]
    boot = {disks.BOOT: f"order={slots[0]}"} if slots[0] == disks.ROOT_DISK else {}
    return devices.plug(vm, wanted, text, slots, lambda _: boot)


def unplug(vm: Vm, volid: str) -> None:
    """Unplug it, wherever it is. Raises what ``devices.unplug`` does."""
    devices.unplug(vm, device(volid))


def require_parked(vm: Vm, volume_id: str, volid: str, holder: Placed | None, cloud: str) -> None:
    """Raise HypervisorError unless a volume rests in its holder, proven the volume's."""
    if holder is None:
        raise devices.refused(f"Volume {volume_id} has no holder.")
    mark = volume_mark(volume_id, cloud)
    there = Vm(vm.shared, vm.work, holder.vmid, holder.node, mark)
    try:
        found = there.locate()
    except ApiError as error:
        if error.category is not Category.NODE_UNHEALTHY:
            raise
        # Its node doesn't answer, but others may have its storage: the record says that it rests.
        vm.work.report(holder=f"{there}: {error.message}")
        return
    config = None if found is None else there.ours(found)
    if config is None or marks.is_building(config):
        raise HypervisorError(Category.VANISHED, f"{there}, the volume's, isn't there.")
    if volumes.held(config, there.vmid) != volid:
        raise HypervisorError(Category.VANISHED, f"{there} hasn't volume {volid}.")
    if not volumes.parked(config, there.vmid):
        raise HypervisorError(
            Category.STORAGE_CONFLICT, f"Something is done to {volid} in {there}."
        )
