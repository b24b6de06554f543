"""Config drives: each is an ISO whose name has VMID and server, so that it is provably ours."""

from __future__ import annotations

from collections.abc import Iterator

from compute.hypervisor.port import Removal
from compute.hypervisor.proxmox.cluster.vmid import ForeignError, Vm
from compute.hypervisor.proxmox.storage import usage, volumes
from compute.hypervisor.proxmox.vm import host_checks, removal
from compute.hypervisor.proxmox.vmconfig import hardware


def upload(vm: Vm, server_uuid: str, iso: bytes) -> str:
    """Upload to the VM's node under the server's own name, so that a repeat replaces it; return
    the volume."""
    storage = host_checks.config_drives(vm.shared, vm.node).name
    name = hardware.config_drive_name(vm.vmid, server_uuid)
    volid = f"{storage}:iso/{name}"
    vm.converge(
        lambda: volumes.exists(vm, vm.node, storage, volid),
        lambda: vm.shared.client.upload(vm.node, storage, "iso", name, iso),
        look_first=False,
    )
    return volid


def present(vm: Vm, name: str) -> str | None:
    """Return the volume with this file name on the VM's node, if there is one."""
    for storage in host_checks.all_config_drives(vm.shared, vm.node):
        volid = f"{storage}:iso/{name}"
        if volumes.exists(vm, vm.node, storage, volid):
            return volid
    return None


def remove(vm: Vm, server_uuid: str) -> Removal:
    """Delete the ISO by its name, on every storage where this driver may have put it."""
    name = hardware.config_drive_name(vm.vmid, server_uuid)
    cleaned: list[str] = []
    for node, storage in _places(vm):
        volid = f"{storage}:iso/{name}"
        if volumes.exists(vm, node, storage, volid):
            user = usage.user(vm, storage, volid, node) if removal.stopped_on(vm) else None
            if user is not None:
                return Removal(False, tuple(cleaned), (f"volume {volid}: {user} uses it",))
            volumes.delete(vm, node, storage, volid)
            if volumes.exists(vm, node, storage, volid):
                return Removal(False, tuple(cleaned), (f"volume {volid}",))
            cleaned.append(f"volume {volid}")
    return Removal(True, tuple(cleaned))


def _places(vm: Vm) -> Iterator[tuple[str, str]]:
    """Yield (node, storage): where the VM is, and where it was planned (moves leave ISOs)."""
    seen = set()
    for node in (vm.node, vm.home):
        for storage in host_checks.all_config_drives(vm.shared, node):
            key = vm.shared.storage_key(node, storage)
            if key not in seen:
                seen.add(key)
                yield node, storage


def let_go(vm: Vm, server_uuid: str) -> Removal:
    """Delete the ISO of a server that has no VM here, unless the VMID's present VM uses it.

    Somebody may have restored or copied the server's VM to that VMID, with the drive inserted.
    """
    try:
        config = vm.locate() or {}
    except ForeignError:
        config = {}  # a container has no drives
    name = hardware.config_drive_name(vm.vmid, server_uuid)
    if any(name in str(value) for value in config.values()):
        return Removal(False, left=(f"config drive {name}: {vm} uses it",))
    return remove(vm, server_uuid)
