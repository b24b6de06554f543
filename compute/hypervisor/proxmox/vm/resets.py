"""Reset: restart the guest in the same QEMU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.guest.hardware import version
from common.messages.reports import Category
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.vmid import LOCK_SECONDS, Vm

#: failures that a stop and start would meet as well
_SAME_FOR_ALL = frozenset({Category.LOCK, Category.AUTHORIZATION, Category.NODE_UNHEALTHY})


def suffices(vm: Vm) -> bool:
    """Return whether a reset does what a stop and a start would.

    It doesn't with pending changes, with a newer QEMU installed than the running one, for a
    paused VM, nor for a VM under high availability.
    """
    status = vm.status()
    running = status.get("status") == "running" and status.get("qmpstatus") == "running"
    if not running or (status.get("ha") or {}).get("managed") or _is_outdated(vm, status):
        return False
    pending = vm.shared.client.get(f"{vm.path}/pending")
    return not any("pending" in one or one.get("delete") for one in pending)


def _is_outdated(vm: Vm, status: Mapping[str, Any]) -> bool:
    node = vm.shared.snapshot.nodes.get(vm.node)
    newest = version(node.detail.machine_version) if node is not None else ()
    runs = version(str(status.get("running-qemu", "")))
    return bool(newest and runs) and runs[: len(newest)] < newest


def reset(vm: Vm) -> bool:
    """Restart the guest; return False if QEMU didn't do it, or the outcome is unknown.

    Raises ApiError for what prevents a stop and start as well.
    """
    for attempt in range(len(LOCK_SECONDS) + 1):
        vm.await_clean_up()
        vm.fence()
        try:
            vm.task(lambda: vm.shared.client.post(f"{vm.path}/status/reset"))
            return True
        except ApiError as error:
            if error.config_lock and attempt < len(LOCK_SECONDS):
                vm.work.pause(vm.lock_pause(error, attempt))
            elif error.category in _SAME_FOR_ALL:
                raise
            else:
                vm.work.report(reset=error.message)
                return False
    return False
