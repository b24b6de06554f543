"""Copies that a migration left on the node where the VM isn't: removed if provably ours."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from common.messages.commands import Destroy
from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError, Removal
from compute.hypervisor.proxmox.cluster.vmid import Config, Vm
from compute.hypervisor.proxmox.storage import one_volume, volumes
from compute.hypervisor.proxmox.storage.volumes import SLACK_SECONDS, Volume, freeing
from compute.hypervisor.proxmox.vmconfig import hardware, movable


def require_none(vm: Vm, source: str, target: str) -> None:
    """Raise HypervisorError if the target has volumes of the VMID that no move of ours made."""
    found = list(_local(vm, target))
    others = [one for one in found if one not in _made_by_moves(vm, source, found)]
    if others:
        names = ", ".join(f"{one.volid} on {target}" for one in others)
        raise HypervisorError(
            Category.STORAGE_CONFLICT,
            f"{vm} can't be moved: {target} has volumes of its VMID: {names}. They were not "
            "touched.",
            left=tuple(f"volume {one.volid} on {target}" for one in others),
            remedy=freeing((target, one.volid) for one in others),
        )


def remove(
    vm: Vm, other: str, source: str, named: Collection[str], drive_names: Collection[str]
) -> Removal:
    """Remove what is left on a node's own storages of a VM that is on another node.

    Ours are volumes that its configuration names or named, those made while a migration of ours
    ran, and config drives of those file names.
    """
    if not vm.shared.node(other).online:
        return Removal(False, left=(f"copies of {vm} on {other}: the node is offline",))
    found = list(_local(vm, other))
    made = [] if all(one.volid in named for one in found) else _made_by_moves(vm, source, found)
    ours = [one for one in found if one.volid in named or one in made]
    ours += drives(vm, other, drive_names)
    for one in ours:
        one_volume.delete(
            vm, one.node, one.storage, one.volid, fence=lambda: _require_away(vm, other)
        )
    left = tuple(f"volume {one.volid} on {other}" for one in found if one not in ours)
    return Removal(not left, tuple(f"volume {one.volid} on {other}" for one in ours), left)


def remove_drive(vm: Vm, config: Config | None, command: Destroy) -> Removal:
    """Remove the config drive that a move left on the placed node; see ``Destroy.left_behind``.

    ``config``: of the server's VM, just seen. On any doubt nothing is touched.
    """
    node, volid = command.placed.node, str(command.left_behind)
    names = hardware.config_drive_names(vm.vmid, command.resource_id)
    inserted = movable.drive(config or {}, names)
    why = ""
    if vm.node == node:
        why = "the VM is there"
    elif not vm.shared.node(node).online:
        why = "the node is offline"
    elif inserted is None or not one_volume.exists(
        vm, vm.node, inserted.partition(":")[0], inserted
    ):
        why = f"the VM has no drive of its own on {vm.node}"
    if why:
        return Removal(False, left=(f"volume {volid} on {node}: {why}",))
    found = [one for one in drives(vm, node, names) if one.volid == volid]
    for one in found:
        one_volume.delete(vm, node, one.storage, volid, fence=lambda: _require_away(vm, node))
    return Removal(True, tuple(f"volume {volid} on {node}" for _ in found))


def _require_away(vm: Vm, other: str) -> None:
    """Raise HypervisorError unless the VM is elsewhere and no migration of it runs."""
    if Vm(vm.shared, vm.work, vm.vmid, other, vm.mark).look() is not None:
        raise HypervisorError(Category.STORAGE_CONFLICT, f"VM {vm.vmid} is on {other} again.")
    lock = vm.fence().get("lock")
    if lock == "migrate":
        raise HypervisorError(Category.LOCK, f"{vm} is being migrated.")


def _local(vm: Vm, node: str) -> Iterator[Volume]:
    """Yield the volumes of the VMID on a node's own storages."""
    for storage in vm.shared.node(node).storages.values():
        if "images" in storage.content and not storage.shared and storage.active:
            yield from volumes.listed_on(vm, node, storage.name)


def drives(vm: Vm, node: str, names: Collection[str]) -> list[Volume]:
    """Return the config drives with these file names on a node's own storages."""
    found = []
    for storage in vm.shared.node(node).storages.values():
        own = "iso" in storage.content and not storage.shared and storage.active
        for volid in (f"{storage.name}:iso/{name}" for name in names if own):
            if one_volume.exists(vm, node, storage.name, volid):
                found.append(Volume(volid, storage.name, node, None))
    return found


def _made_by_moves(vm: Vm, source: str, found: Collection[Volume]) -> list[Volume]:
    """Return those created while a migration by our token moved this VM from its source."""
    if not found:
        return []
    spans = vm.shared.tasks.spans(source, vm.vmid, "qmigrate", vm.shared.settings.token.id)
    return [
        one
        for one in found
        if one.created is not None
        and any(
            start - SLACK_SECONDS <= one.created <= end + SLACK_SECONDS for start, end in spans
        )
    ]
