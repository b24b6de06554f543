"""What a failed restore leaves: a VM without lock, without options, and without our marks.

Proxmox VE removes the disks and the lock, but not the VMID's empty configuration. It has nobody's
mark; it is ours if the last task that created a VM of this id was a restore by our token.
"""

from __future__ import annotations

from typing import Any

from compute.hypervisor.proxmox.cluster import holders
from compute.hypervisor.proxmox.cluster.vmid import Config, Vm
from compute.hypervisor.proxmox.vmconfig import marks

_BARE = frozenset({"digest", "lock"})


def are_ours(vm: Vm) -> bool:
    """Return whether the VM is the remainder of a failed restore of ours."""
    config = vm.locate()
    return config is not None and _is_bare(config) and _made_by_us(vm)


def claim(vm: Vm) -> bool:
    """Write our mark into what a restore of ours left; return whether that was so."""
    config = vm.locate()
    if config is None or not _is_bare(config):
        return False
    config = vm.unlocked(config)
    if config is None or not _is_bare(config) or not _made_by_us(vm):
        return False
    digest = config["digest"]

    def call() -> Any:
        # The digest is that of the empty configuration: nobody has made anything of it since.
        values = {"description": vm.mark.description(marks.BUILDING), "digest": digest}
        return vm.shared.client.post(f"{vm.path}/config", **values)

    vm.converge(lambda: vm.mark.line in marks.lines(vm.look() or {}), call)
    return True


def _is_bare(config: Config) -> bool:
    return config.keys() <= _BARE


def _made_by_us(vm: Vm) -> bool:
    task = holders.creator(vm.shared, vm.node, vm.vmid)
    us = vm.shared.settings.token.id
    return task is not None and task.kind == holders.RESTORE and task.who == us
