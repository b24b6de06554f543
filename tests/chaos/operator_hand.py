"""The operator: does what a fault's remedy says, as root on the node, and nothing else."""

from __future__ import annotations

import re
from typing import Any

from simulator.qemu.drives import drives_of
from simulator.state.cluster import Cluster

_UNLOCK = re.compile(r"\bqm unlock (\d+)")
_DESTROY = re.compile(r"\bqm destroy (\d+) --purge")
_FREE = re.compile(r"\bpvesm free (\S+)")
_PROTECTED = re.compile(r"\bqm set (\d+) --protection 0")
_NODE = re.compile(r"as root on ([\w-]+):")


def follow(cluster: Cluster, remedy: str) -> bool:
    """Run the commands of a remedy, unless what it is about has gone; return whether it did."""
    node = _NODE.search(remedy)
    with cluster.turn():
        if not cluster.quorate:
            return False  # later: nothing can be written now
        locked = [vmid for vmid in map(int, _UNLOCK.findall(remedy)) if _is_locked(cluster, vmid)]
        for vmid in locked:
            cluster.edit(cluster.vms[vmid]).config.pop("lock")
        half_made = [vmid for vmid in map(int, _DESTROY.findall(remedy)) if vmid in locked]
        for vmid in half_made:
            _destroy(cluster, vmid)
        lifted = [vmid for vmid in map(int, _PROTECTED.findall(remedy)) if _lift(cluster, vmid)]
        freed = [
            volid
            for volid in _FREE.findall(remedy)
            if _free(cluster, volid, node[1] if node else "")
        ]
    return bool(locked or lifted or freed)


def _lift(cluster: Cluster, vmid: int) -> bool:
    """`qm set --protection 0`."""
    vm: Any = cluster.vms.get(vmid)
    if vm is None or vm.config.get("protection") != "1":
        return False
    cluster.edit(vm).config["protection"] = "0"
    return True


def _is_locked(cluster: Cluster, vmid: int) -> bool:
    vm: Any = cluster.vms.get(vmid)
    return vm is not None and bool(vm.lock)


def _destroy(cluster: Cluster, vmid: int) -> None:
    """`qm destroy --purge` frees what the configuration names; of a mere shell that is nothing."""
    vm = cluster.vms[vmid]
    named = {drive.file for drive in drives_of(vm.config, unused=True)}
    cluster.remove_vm(vm)
    for volume in list(cluster.volumes.all()):
        if volume.vmid == vmid and volume.volid in named:
            cluster.remove_volume(volume)


def _free(cluster: Cluster, volid: str, node: str) -> bool:
    volume = cluster.volume(volid, node or next(iter(cluster.nodes)))
    if volume is None or volume.vmid in cluster.vms:
        return False
    cluster.remove_volume(volume)
    return True
