"""What a volume's disk, or a storage for it, must be before anything is done."""

from __future__ import annotations

from collections.abc import Iterable

from common.messages.commands import VolumeUser
from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.cluster import space
from compute.hypervisor.proxmox.cluster.vmid import Vm
from compute.hypervisor.proxmox.observe.snapshot import Storage
from compute.hypervisor.proxmox.storage import usage
from compute.hypervisor.proxmox.vmconfig import storage_types, volumes
from compute.hypervisor.proxmox.vmconfig.marks import server_mark

#: VMs up to which all of a cluster are read before a volume is removed
READ_ALL = 200


def require_unused(holder: Vm, disk: str, users: Iterable[VolumeUser]) -> None:
    """Raise HypervisorError (protected) if a VM names the volume besides its holder."""
    who = user_of(holder, disk, users)
    if who is not None:
        raise HypervisorError(
            Category.PROTECTED,
            f"{who} uses {disk}. It was not touched.",
            left=(f"volume {disk}: {who} uses it, not touched",),
        )


def user_of(holder: Vm, disk: str, users: Iterable[VolumeUser]) -> str | None:
    """Return a VM that names the volume besides its holder; None: none does.

    ``users``: servers that had it. In large clusters only their VMs are read.
    """
    for user in users:
        mark = server_mark(user.server_uuid, holder.work.command.cloud)
        vm = Vm(holder.shared, holder.work, user.vmid, user.node, mark)
        config = vm.locate()
        if config is not None and volumes.slot_of(config, disk) is not None:
            return str(vm)
        snapshot = config is not None and usage.in_snapshot(vm.shared.client, vm.path, disk)
        if snapshot:
            return f"Snapshot {snapshot} of {vm}"
    others = sum(vmid != holder.vmid for vmid in holder.shared.snapshot.vms)
    if others > READ_ALL:
        return None
    return usage.user(holder, disk.split(":", 1)[0], disk, but=holder.vmid)


def require_room(vm: Vm, storage: Storage, needed: int) -> None:
    """Raise HypervisorError unless a storage that takes all at once has this many bytes left."""
    if not storage_types.of(storage.kind).thin:
        space.require(vm.shared, vm.node, storage, needed)
