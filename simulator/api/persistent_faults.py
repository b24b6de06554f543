"""Persistent faults: what they change in a cluster, and how that is undone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from simulator.api.ha import recovery
from simulator.engine import Acquire, Lock, Process, Sleep, Work
from simulator.qemu.power import mark_stopped
from simulator.state.access import Identity
from simulator.state.cluster import Cluster
from simulator.state.faults import BadOrder, Fault
from simulator.state.model import Node

RESTART_SECONDS = 3.0
HOUR_SECONDS = 3600.0

_NODE_STATES: dict[str, tuple[str, Any, Any]] = {
    "node-down": ("up", False, True),
    "proxy-down": ("proxy", "down", "up"),
    "daemon-down": ("daemon", "down", "up"),
    "daemon-restart": ("daemon", "down", "up"),
    "daemon-hung": ("daemon", "hung", "up"),
}


def apply(cluster: Cluster, fault: Fault) -> None:
    """Apply a fault. Raises BadOrder if what it names doesn't exist."""
    try:
        _BEGIN.get(fault.action, _nothing)(cluster, fault)
    except BadOrder:
        cluster.faults.remove(fault.id)
        raise
    if fault.action == "daemon-restart" and not fault.seconds:
        fault.seconds = RESTART_SECONDS
    if fault.seconds and fault.action in _BEGIN and fault.action != "hold":

        def later() -> Work:
            yield Sleep(fault.seconds)
            if cluster.faults.remove(fault.id) is not None:
                undo(cluster, fault)

        cluster.engine.spawn(Process(later(), cluster.turn))


def undo(cluster: Cluster, fault: Fault) -> None:
    """Undo what a fault has changed."""
    _END.get(fault.action, _nothing)(cluster, fault)


def _nothing(cluster: Cluster, fault: Fault) -> None:
    """Change nothing: most faults only strike calls."""


# --- nodes


def _nodes_of(cluster: Cluster, fault: Fault) -> Iterable[Node]:
    return [one for one in cluster.nodes.values() if fault.node in ("", one.name)]


def _set_nodes(cluster: Cluster, fault: Fault) -> None:
    name, value, _normal = _NODE_STATES[fault.action]
    for node in _nodes_of(cluster, fault):
        setattr(node, name, value)
        cluster.save("node", node.name, node)
        if fault.action == "node-down":
            _lose_power(cluster, node.name)
            work = recovery.recover(cluster, node, all_vms=fault.ha)
            cluster.engine.spawn(Process(work, cluster.turn))


def _reset_nodes(cluster: Cluster, fault: Fault) -> None:
    name, _value, normal = _NODE_STATES[fault.action]
    for node in _nodes_of(cluster, fault):
        setattr(node, name, normal)
        cluster.save("node", node.name, node)


def _lose_power(cluster: Cluster, node: str) -> None:
    for task in cluster.tasks.active(node):
        cluster.tasks.kill(task.upid)
    for vm in cluster.vms.values():
        if vm.node == node and vm.running:
            mark_stopped(cluster, vm)


# --- tokens


def _revoke(cluster: Cluster, fault: Fault) -> None:
    _set_revoked(cluster, fault, True)


def _grant_again(cluster: Cluster, fault: Fault) -> None:
    _set_revoked(cluster, fault, False)


def _set_revoked(cluster: Cluster, fault: Fault, revoked: bool) -> None:
    for user in cluster.access.users.values():
        for token in user.tokens.values():
            name = Identity(user.userid, token.tokenid).authid
            if fault.token in ("", name):
                token.revoked = revoked
    cluster.save_access()


# --- locks


def _hold(cluster: Cluster, fault: Fault) -> None:
    """Hold the locks that the fault names until it is removed."""
    for lock in _locks_of(cluster, fault):

        def holder(lock: Lock = lock) -> Work:
            yield Acquire(lock, HOUR_SECONDS)
            while True:
                yield Sleep(HOUR_SECONDS)

        process = Process(holder(), cluster.turn)
        fault.holders.append(process)
        cluster.engine.spawn(process)


def _let_go(cluster: Cluster, fault: Fault) -> None:
    for process in fault.holders:
        cluster.engine.let_go(process)


def _locks_of(cluster: Cluster, fault: Fault) -> list[Lock]:
    if fault.action == "hold":
        return [fault.gate]
    nodes = [node.name for node in _nodes_of(cluster, fault)]
    if fault.vmid:
        return [cluster.vm_lock(node, fault.vmid) for node in nodes]
    if fault.storage:
        found = [cluster.storage_lock(fault.storage, node) for node in nodes]
        return list({lock.name: lock for lock in found}.values())
    raise BadOrder("lock-held needs a vmid or a storage")


def _lock_config(cluster: Cluster, fault: Fault) -> None:
    """Set a `lock` entry in the configuration that no task explains."""
    vm = cluster.vms.get(fault.vmid)
    if vm is None:
        raise BadOrder(f"there is no VM {fault.vmid}")
    cluster.edit(vm).config["lock"] = fault.lock or "backup"


def _unlock_config(cluster: Cluster, fault: Fault) -> None:
    """Remove the `lock` entry, as root does with `qm unlock`."""
    vm = cluster.vms.get(fault.vmid)
    if vm is not None and vm.lock == (fault.lock or "backup"):
        cluster.edit(vm).config.pop("lock")


_Effect = Callable[[Cluster, Fault], None]

_BEGIN: Mapping[str, _Effect] = {
    **dict.fromkeys(_NODE_STATES, _set_nodes),
    "no-quorum": _nothing,
    **dict.fromkeys(
        ("storage-full", "vnet-error", "no-reload", "maintenance", "guest-silent"), _nothing
    ),
    "token-revoked": _revoke,
    "lock-held": _hold,
    "hold": _hold,
    "config-lock": _lock_config,
}
_END: Mapping[str, _Effect] = {
    **dict.fromkeys(_NODE_STATES, _reset_nodes),
    "token-revoked": _grant_again,
    "lock-held": _let_go,
    "hold": _let_go,
    "config-lock": _unlock_config,
}
