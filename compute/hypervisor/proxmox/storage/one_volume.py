"""One volume, by its name: whether it exists, its size, and its removal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from shlex import quote
from typing import Any

from common.failures import Verdict
from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api import paths
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.vmid import Vm
from compute.hypervisor.proxmox.storage import usage
from compute.hypervisor.proxmox.vmconfig import disks
from compute.hypervisor.proxmox.vmconfig.storage_types import LVM, QCOW2


def delete(
    vm: Vm, node: str, storage: str, volid: str, fence: Callable[[], None] = lambda: None
) -> None:
    """Delete a volume by name, after ``fence``; a missing one is no error.

    Raises HypervisorError (protected) for a disk that a snapshot of its VM names, which Proxmox VE
    does not look for here.
    """

    def call() -> Any:
        fence()
        _require_in_no_snapshot(vm, node, storage, volid)
        return vm.shared.client.delete(paths.volume(node, volid))

    with vm.shared.storage_queue.slot(vm.work, vm.shared.storage_key(node, storage), "free"):
        vm.converge(
            lambda: not exists(vm, node, storage, volid),
            call,
            look_first=False,
        )


def _require_in_no_snapshot(vm: Vm, node: str, storage: str, volid: str) -> None:
    owner = disks.owner(volid)
    if owner is None:
        return
    # A node's own storage has the disks of the VMs that are there.
    where = vm.node if vm.shared.storage_key(node, storage)[0] is None else node
    try:
        path = f"nodes/{where}/qemu/{owner}"
        snapshot = usage.in_snapshot(vm.shared.client, path, volid)
    except ApiError as error:
        if error.no_config:
            return
        raise
    if snapshot:
        raise HypervisorError(
            Category.PROTECTED,
            f"Snapshot {snapshot} of VM {owner} on {where} names {volid}. It was not touched.",
            left=(f"volume {volid}: snapshot {snapshot} names it, not touched",),
            remedy=f"as root on {where}: qm delsnapshot {owner} {quote(snapshot)}",
            verdict=Verdict.FATAL,
        )


def exists(vm: Vm, node: str, storage: str, volid: str) -> bool:
    """Return whether a volume exists. Raises ApiError when that is not known.

    A qcow2 volume on LVM that is not active can't be read, but is listed.
    """
    try:
        vm.shared.client.get(paths.volume(node, volid))
    except ApiError as error:
        if not error.no_volume:
            raise
        seen = vm.shared.snapshot.storage(node, storage)
        hidden = seen is not None and seen.type == LVM and volid.endswith(f".{QCOW2}")
        return hidden and _listing(vm, node, volid) is not None
    return True


def _listing(vm: Vm, node: str, volid: str) -> Mapping[str, Any] | None:
    """Return how its storage lists a disk; None: it doesn't. Raises ApiError."""
    path = f"nodes/{node}/storage/{volid.split(':', 1)[0]}/content"
    listed = vm.shared.client.get(path, content="images", vmid=disks.owner(volid) or vm.vmid)
    return next((one for one in listed if one["volid"] == volid), None)


def listed_bytes(vm: Vm, volid: str, *, at_most: bool = False) -> int:
    """Return the size of a volume of the VMID; 0: its storage doesn't list it. Raises ApiError.

    Of a qcow2 volume on LVM that is not active only what it takes is listed, which is more than
    its size: ``at_most`` is content with that.
    """
    found = _listing(vm, vm.node, volid) or {}
    return int(found.get("size") or (at_most and found.get("approximate-size")) or 0)
