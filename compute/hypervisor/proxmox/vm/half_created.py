"""Half-created VMs: the disks that remain when root removes them."""

from __future__ import annotations

from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.holders import MAKERS
from compute.hypervisor.proxmox.cluster.vmid import Vm
from compute.hypervisor.proxmox.storage import volumes
from compute.hypervisor.proxmox.vmconfig import disks


def name_disks(vm: Vm, error: HypervisorError) -> None:
    """Add the half-created VM's disks, and the commands that free them, to a lock's error."""
    found = disks_left(vm)
    error.left = (*error.left, *(f"volume {volid}" for volid in found))
    if error.remedy is not None:
        error.remedy = " && ".join([error.remedy, *map(volumes.free_line, found)])


def disks_left(vm: Vm) -> list[str]:
    """Return our disks that `qm destroy` of a half-created VM leaves."""
    try:
        config = vm.look()
        if config is None or config.get("lock") not in MAKERS:
            return []
        named = disks.volumes(config, vm.vmid)
        return [
            one.volid
            for one in volumes.made_by_us(vm, volumes.of_vm(vm))
            if one.volid not in named
        ]
    except ApiError as error:
        vm.work.report(disks_left=f"not known: {error.message}")
        return []
