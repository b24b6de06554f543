"""Config drives: each is an ISO whose name has VMID and server, so that it is provably ours."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from compute.hypervisor.port import Removal
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.vmid import ForeignError, Vm
from compute.hypervisor.proxmox.storage import one_volume, usage
from compute.hypervisor.proxmox.vm import host_checks, removal
from compute.hypervisor.proxmox.vmconfig import hardware


def upload(vm: Vm, server_uuid: str, iso: bytes, beside: str = "") -> str:
    """Upload under the server's own name, so that a repeat replaces it; return the volume.

    ``beside``: the drive that is to stay, which has the other name.
    """
    target = volid(vm, server_uuid, beside)
    storage, _, name = target.partition(":iso/")
    vm.converge(
        lambda: one_volume.exists(vm, vm.node, storage, target),
        lambda: vm.shared.client.upload(vm.node, storage, "iso", name, iso),
        look_first=False,
    )
    return target


def present(vm: Vm, names: Collection[str]) -> str | None:
    """Return the volume with one of these file names on the VM's node, if there is one."""
    for storage in host_checks.all_config_drives(vm.shared, vm.node):
        for there in (f"{storage}:iso/{name}" for name in names):
            if one_volume.exists(vm, vm.node, storage, there):
                return there
    return None


def volid(vm: Vm, server_uuid: str, beside: str = "") -> str:
    """Return the volume that a config drive is uploaded as; see ``upload``."""
    storage = host_checks.config_drives(vm.shared, vm.node).name
    names = hardware.config_drive_names(vm.vmid, server_uuid)
    name = next(one for one in names if not beside.endswith(f"/{one}"))
    return f"{storage}:iso/{name}"


def remove(vm: Vm, server_uuid: str, keep: Collection[str] = ()) -> Removal:
    """Delete the ISO by its names, on every storage where this driver may have put it.

    ``keep`` are volumes that stay.
    """
    names = hardware.config_drive_names(vm.vmid, server_uuid)
    cleaned: list[str] = []
    for node, storage in _places(vm):
        for there in (f"{storage}:iso/{name}" for name in names):
            if there in keep or not _is_there(vm, node, storage, there):
                continue
            user = usage.user(vm, storage, there, node) if removal.stopped_on(vm) else None
            if user is not None:
                return Removal(False, tuple(cleaned), (f"volume {there}: {user} uses it",))
            one_volume.delete(vm, node, storage, there)
            if one_volume.exists(vm, node, storage, there):
                return Removal(False, tuple(cleaned), (f"volume {there}",))
            cleaned.append(f"volume {there}")
    return Removal(True, tuple(cleaned))


def _is_there(vm: Vm, node: str, storage: str, there: str) -> bool:
    """Return whether a volume exists; on one of all storages that was seen inactive and can't be
    read, none does."""
    try:
        return one_volume.exists(vm, node, storage, there)
    except ApiError:
        seen = vm.shared.snapshot.storage(node, storage)
        if vm.shared.settings.iso_storage is not None or seen is None or seen.active:
            raise
        return False


def _places(vm: Vm) -> Iterator[tuple[str, str]]:
    """Yield (node, storage): where the VM is, and where it was planned (moves leave ISOs).

    Also storages that were last seen inactive, as all of a node that has just come back were.
    """
    seen = set()
    for node in (vm.node, vm.home):
        for storage in host_checks.all_config_drives(vm.shared, node, also_inactive=True):
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
    for name in hardware.config_drive_names(vm.vmid, server_uuid):
        if any(name in str(value) for value in config.values()):
            return Removal(False, left=(f"config drive {name}: {vm} uses it",))
    return remove(vm, server_uuid)
