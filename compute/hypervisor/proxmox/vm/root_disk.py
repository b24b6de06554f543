"""The root disk that somebody took off a VM: it is never started without."""

from __future__ import annotations

import re
from shlex import quote

from common.messages.commands import Power
from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.vmid import Config, Vm
from compute.hypervisor.proxmox.vmconfig import disks, marks


def require(vm: Vm, config: Config) -> None:
    """Raise HypervisorError (disk_lost) if a configuration has no root disk.

    A disk that remains as unused can be given back; otherwise a rebuild makes a new one.
    """
    if not disks.lacks_root(config, adopted=marks.is_adopted(config)):
        return
    kept = disks.unused(config)
    remedy = None
    if len(kept) == 1:
        slot, disk = disks.ROOT_DISK, quote(kept[0])
        remedy = f"as root on {vm.node}: qm set {vm.vmid} --{slot} {disk} --boot order={slot}"
    raise HypervisorError(
        Category.DISK_LOST,
        f"{vm} has no root disk ({disks.ROOT_DISK}): somebody removed it. It was left as it is.",
        remedy=remedy,
    )


#: what a start task says of a disk that its storage hasn't; a CD is none
_GONE = re.compile(r"volume '([^']*)' does not exist")


def explained(vm: Vm, error: ApiError) -> HypervisorError:
    """Return the error of a start; disk_lost where one of the VM's own disks is gone."""
    found = _GONE.search(error.text)
    if found is None or not isinstance(vm.work.command, Power):
        return error
    if not disks.volumes({disks.ROOT_DISK: found[1]}, vm.vmid):
        return error
    return HypervisorError(
        Category.DISK_LOST,
        f"{vm} can't be started: its storage hasn't {found[1]} any more.",
        upid=error.upid,
        log_tail=error.log_tail,
    )
