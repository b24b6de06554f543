"""Removal: stop, purge, and confirm that configuration and volumes are absent.

``destroy-unreferenced-disks`` is never used: on a shared storage it would remove volumes of
another cluster's VM of the same id.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

from common.failures import Verdict
from common.messages.commands import Destroy
from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError, Removal
from compute.hypervisor.proxmox.cluster import holders, quorum
from compute.hypervisor.proxmox.cluster.vmid import Config, Vm
from compute.hypervisor.proxmox.storage import usage, volumes
from compute.hypervisor.proxmox.storage.volumes import Seen, Volume
from compute.hypervisor.proxmox.vm import power
from compute.hypervisor.proxmox.vmconfig import disks


def remove(vm: Vm, clear: Seen | None = None) -> Removal:
    """Remove the VM and its disks, if they are provably ours.

    ``clear``: places where the VMID had no volumes before we began, so that all volumes there are
    ours now. Otherwise only those are removed that the configuration named, or that our own create
    task made; others are left and reported. Raises HypervisorError when fenced off or locked.
    """
    cleaned: list[str] = []
    known: frozenset[str] = frozenset()
    config = vm.locate()
    if config is not None:
        config = vm.ours(config)
    if config is not None:
        require_unprotected(vm, config)
        known = disks.volumes(config, vm.vmid)
        volumes.require_reach(vm, known)
        _destroy(vm, config)
        cleaned.append(str(vm))
    used: dict[str, str] = {}
    left = _sweep(vm, known, clear or Seen(), cleaned, used)
    free = [volume for volume in left if volume.volid not in used]
    return Removal(
        not left,
        tuple(cleaned),
        tuple(f"volume {one.volid}{used.get(one.volid, '')}" for one in left),
        f"as root on {vm.node}: {volumes.free_line(free[0].volid)}" if free else None,
    )


def require_unprotected(vm: Vm, config: Config) -> None:
    """Raise HypervisorError (protected) for a VM that is protected from removal.

    Proxmox VE refuses only the destroy, when the VM has been stopped already.
    """
    if str(config.get("protection", "0")) != "1":
        return
    raise HypervisorError(
        Category.PROTECTED,
        f"{vm} is protected from removal. It was not touched.",
        left=(f"{vm}: protected, not touched",),
        remedy=f"as root on {vm.node}: qm set {vm.vmid} --protection 0",
        verdict=Verdict.FATAL,
    )


def stopped_on(vm: Vm) -> str | None:
    """Return the node on which alone a stopped VM may be removed; None: no restriction."""
    command = vm.work.command
    return command.stopped_on if isinstance(command, Destroy) else None


def _require_as_seen(vm: Vm, node: str) -> None:
    """Raise HypervisorError if somebody moved or started it since."""
    why = f"it is not on {node} any more" if vm.node != node else ""
    why = why or ("it runs by now" if vm.running() else "")
    if why:
        raise HypervisorError(
            Category.CONFIGURATION,
            f"{vm} is not as it was seen: {why}. It was not touched.",
            left=(f"{vm}: {why}, not touched",),
        )


def _require_not_restored(vm: Vm) -> None:
    """Raise HypervisorError (foreign) if the command excludes a VM that somebody has restored.

    No command of ours restores a server's VM. Without the privilege to see tasks of others
    (Sys.Audit on the node) theirs aren't seen.
    """
    command = vm.work.command
    since = command.unrestored_since if isinstance(command, Destroy) else None
    if since is None:
        return
    made = next(iter(vm.shared.tasks.of_vm(vm.node, vm.vmid, holders.RESTORE)), None)
    at = datetime.datetime.fromtimestamp(0 if made is None else made.start, datetime.UTC)
    if made is None or at < since:
        return  # or another VM had the VMID then
    raise HypervisorError(
        Category.FOREIGN,
        f"{vm} was restored from a backup by {made.who} at {at:%Y-%m-%d %H:%M:%S} UTC. "
        "It was not touched.",
        left=(f"{vm}: restored by {made.who}, not touched",),
        remedy="micronova orphan reap",
    )


def _destroy(vm: Vm, config: Config) -> None:
    node = stopped_on(vm)
    if node is not None:
        _require_as_seen(vm, node)
    storages = sorted(volumes.storages_of(disks.volumes(config, vm.vmid)))
    key = vm.shared.storage_key(vm.node, storages[0] if storages else "")

    def delete() -> Any:
        # Somebody may have started or protected it since; ownership is checked to the last.
        quorum.require(vm)
        if node is None:
            power.stop(vm, 0)
        else:
            _require_as_seen(vm, node)
        require_unprotected(vm, vm.fence())
        _require_not_restored(vm)
        return vm.shared.client.delete(vm.path, purge=1)

    with vm.shared.storage_queue.slot(vm.work, key, "destroy"):
        ended = vm.converge(lambda: vm.look() is None, delete, look_first=False)
    # Gone without a task of ours: from this node, but perhaps to another one.
    if (vm.locate() if ended is None else vm.look()) is not None:
        raise HypervisorError(
            Category.UNKNOWN_OUTCOME,
            f"{vm} is still there after its destroy task.",
            left=(str(vm),),
        )


def _sweep(
    vm: Vm,
    known: frozenset[str],
    clear: Seen,
    cleaned: list[str],
    used: dict[str, str],
) -> list[Volume]:
    """Free the remaining volumes that are provably ours; return what is left after that.

    ``used`` gets those that others use: somebody may have attached them to another VM.
    """
    there = volumes.of_vm(vm, known)
    if not there:
        return []
    volumes.require_no_vm(vm, there)
    proven = [volume for volume in there if clear.had(vm, volume) or volume.volid in known]
    rest = [volume for volume in there if volume not in proven]
    for volume in _children_first([*proven, *volumes.made_by_us(vm, rest)]):
        ours = clear.had(vm, volume)
        user = None if ours else usage.user(vm, volume.storage, volume.volid)
        if user is not None:
            used[volume.volid] = f": {user} uses it"
            continue
        volumes.free(vm, volume)
        cleaned.append(f"volume {volume.volid}")
    return volumes.of_vm(vm, known)


def _children_first(found: Iterable[Volume]) -> list[Volume]:
    """Return linked clones before their bases: a clone has the longer path."""
    return sorted(found, key=lambda volume: -volume.volid.count("/"))
