"""Moves a volume to another storage: Proxmox VE copies the disk, then the holder names the copy.

The configuration names the copy only once it is whole; so a look at it says where the volume is.
What a killed task left of a copy is proven by its log, or its time.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from common.messages.commands import RetypeVolume
from common.messages.reports import Category, MadeVolume
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.cluster import quorum
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.cluster.vmid import Config, Vm
from compute.hypervisor.proxmox.storage import one_volume
from compute.hypervisor.proxmox.storage import volumes as stored
from compute.hypervisor.proxmox.storage.volumes import Volume
from compute.hypervisor.proxmox.vm import host_checks
from compute.hypervisor.proxmox.vmconfig import disks, volumes
from compute.hypervisor.proxmox.volume import fence, snapshots
from compute.hypervisor.proxmox.volume.parking import Holder

_MOVE = "qmmove"
#: a line of the log of such a task
_ALLOCATED = re.compile(r"allocated target volume '([^']+)'")
#: lines of a log before which it is
_HEAD = 20


def change(shared: Shared, holder: Holder, command: RetypeVolume) -> MadeVolume:
    """See ``port.Volume.retype``."""
    vm = holder.vm
    quorum.require(vm)
    holder.required()
    # What an agent before this one has begun ends before anything is decided.
    vm.await_tasks()
    disk = _moved(holder.required(), vm.vmid, command)
    if disk is None and command.settle:
        return _stay(shared, holder, command)
    if disk is None:
        _move(shared, holder, command)
        disk = _moved(holder.required(), vm.vmid, command)
    if disk is None:
        raise HypervisorError(
            Category.UNKNOWN_OUTCOME, f"{vm} has no disk on {command.storage} after its move."
        )
    _remove_source(shared, vm, command)
    _remove_copies(shared, vm, command.storage)
    way = snapshots.known_way(shared, vm.node, command.storage)
    if not way:
        holder.plug(disk)
        way = snapshots.way(shared, vm, command.storage)
    size = holder.bytes_of(disk)
    holder.park()
    return MadeVolume(disk, size, way)


def _moved(config: Config, vmid: int, command: RetypeVolume) -> str | None:
    """Return the volume's disk where it is to go; None: it isn't there."""
    own = disks.volumes(config, vmid) - {command.volid}
    return next((one for one in sorted(own) if one.startswith(f"{command.storage}:")), None)


def _stay(shared: Shared, holder: Holder, command: RetypeVolume) -> MadeVolume:
    """Leave it where it was, and nothing of it where it was to go."""
    holder.having(command.volid)
    _remove_copies(shared, holder.vm, command.storage)
    size = holder.bytes_of(command.volid)
    holder.park()
    return MadeVolume(command.volid, size)


def _move(shared: Shared, holder: Holder, command: RetypeVolume) -> None:
    vm = holder.vm
    holder.having(command.volid)
    storage = host_checks.storage(shared, vm.node, command.storage)
    if vm.node != vm.home and not storage.shared:
        raise HypervisorError(
            Category.CONFIGURATION,
            f"{vm} was on {vm.home} when the retype was begun, and {storage.name} is not shared.",
        )
    _require_clear(vm, _remove_copies(shared, vm, storage.name))
    fence.require_room(vm, storage, one_volume.listed_bytes(vm, command.volid, at_most=True))
    # Attaching a volume requires that its holder is protected: nobody gets it any more.
    holder.plug(command.volid)
    fence.require_unused(vm, command.volid, command.users)

    def done() -> bool:
        return _moved(holder.required(), vm.vmid, command) is not None

    def call() -> Any:
        _require_clear(vm, _remove_copies(shared, vm, storage.name))
        config = vm.fence()
        slot = volumes.slot_of(config, command.volid)
        if slot is None:
            raise HypervisorError(Category.VANISHED, f"{vm} hasn't {command.volid} any more.")
        return shared.client.post(
            f"{vm.path}/move_disk",
            disk=slot,
            storage=storage.name,
            delete=1,
            digest=config["digest"],
            **disks.form_of_copy(storage.kind),
        )

    key = shared.storage_key(vm.node, storage.name)
    with shared.storage_queue.slot(vm.work, key, f"move of {command.volid}"):
        vm.converge(done, call, look_first=False)


def _remove_source(shared: Shared, vm: Vm, command: RetypeVolume) -> None:
    """Remove the disk that was copied, where Proxmox VE has not: the holder names its copy."""
    volid = command.volid
    storage = volid.split(":", 1)[0]
    if not volumes.names(vm.fence(), volid) and not one_volume.exists(vm, vm.node, storage, volid):
        return
    user = fence.user_of(vm, volid, command.users)
    if user is not None:
        vm.work.report(left=f"{volid}: {user}")
        return

    def call() -> Any:
        config = vm.fence()
        slots = ",".join(sorted(key for key, one in config.items() if volumes.volid(one) == volid))
        path = f"{vm.path}/config"
        return shared.client.post(path, delete=slots, digest=config["digest"])

    vm.converge(lambda: not volumes.names(vm.look() or {}, volid), call)
    if one_volume.exists(vm, vm.node, storage, volid):
        one_volume.delete(
            vm, vm.node, storage, volid, fence=functools.partial(_require_unnamed, vm, volid)
        )


def _remove_copies(shared: Shared, vm: Vm, storage: str) -> list[Volume]:
    """Remove what moves that were killed left on a storage; return what is no such volume."""
    named = disks.volumes(vm.fence(), vm.vmid)
    there = [one for one in stored.listed_on(vm, vm.node, storage) if one.volid not in named]
    ours = _copies(shared, vm, storage, there) if there else []
    left = [one for one in there if one not in ours]
    for copy in ours:
        if fence.user_of(vm, copy.volid, ()) is not None:
            left.append(copy)
        else:
            proof = functools.partial(_require_unnamed, vm, copy.volid)
            one_volume.delete(vm, vm.node, storage, copy.volid, fence=proof)
    if left:
        vm.work.report(left=", ".join(one.volid for one in left))
    return left


def _require_clear(vm: Vm, strangers: list[Volume]) -> None:
    """Raise HypervisorError for volumes of the holder's VMID that aren't its own."""
    if strangers:
        names = ", ".join(one.volid for one in strangers)
        raise HypervisorError(
            Category.STORAGE_CONFLICT,
            f"{vm} does not have these volumes, which bear its VMID: {names}. They were not "
            "touched.",
            left=tuple(f"volume {one.volid}" for one in strangers),
            remedy=stored.freeing((vm.node, one.volid) for one in strangers),
        )


def _require_unnamed(vm: Vm, volid: str) -> None:
    """Raise HypervisorError if the holder names a volume that is to go."""
    if volumes.names(vm.fence(), volid):
        raise HypervisorError(Category.PROTECTED, f"{vm} names {volid}. It was not touched.")


def _copies(shared: Shared, vm: Vm, storage: str, there: list[Volume]) -> list[Volume]:
    """Return the volumes that moves of this holder's disk by our token have made.

    The task's log names them, unless the task was killed before. Then the volume's time decides; a
    storage without times was clear of others' volumes when the task began.
    """
    me, named, unnamed = shared.settings.token.id, set(), False
    for task in shared.tasks.of_vm(vm.node, vm.vmid, _MOVE):
        lines = shared.tasks.log_head(task, _HEAD) if task.who == me else ()
        made = {match[1] for line in lines if (match := _ALLOCATED.search(line))}
        goes_there = any(f"to target storage '{storage}'" in line for line in lines)
        named |= made
        unnamed = unnamed or (goes_there and not made)
    timed = stored.made_by(shared, vm.node, vm.vmid, there, _MOVE)
    return [
        one
        for one in there
        if one.volid in named or one in timed or (unnamed and one.created is None)
    ]
