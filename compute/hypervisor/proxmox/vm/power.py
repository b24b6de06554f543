"""Start, stop and reboot of one VM, each seen done.

A VM under high availability is started and stopped by the HA manager: Proxmox VE turns our call
into a request, whose task (``hastart``, ``hastop``) ends OK at once. So the manager has the state
that the server's owner wants and doesn't revert it; here the result is waited for.
A hard reboot is a reset where that is enough: the QEMU process continues, and the node has
nothing to clean up (see ``restarts``). Pending changes need a new QEMU process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api import upid
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.api.tasks import Ended
from compute.hypervisor.proxmox.cluster.vmid import Vm
from compute.hypervisor.proxmox.vm import resets

#: the managers of cluster and nodes look every ten seconds each
MANAGER_LOOK_SECONDS = 1.0


def start(vm: Vm, *, look_first: bool) -> None:
    """Start it and see it running. Raises HypervisorError when it doesn't."""
    posted: list[float] = []

    def post() -> Any:
        posted.append(vm.shared.restarts.now())
        return vm.shared.client.post(f"{vm.path}/status/start")

    ended = vm.converge(vm.running, post, look_first=look_first, fence=True)
    if _is_request(ended):
        _await_manager(vm, "running")
    elif not vm.running():
        raise HypervisorError(
            Category.CREATION_FAILED, f"{vm} does not run after its start task ended well."
        )
    elif posted:
        # Also of one whose answer was lost.
        vm.shared.restarts.started(vm.vmid, posted[-1])


def stop(vm: Vm, graceful_seconds: int) -> None:
    """Stop it. With seconds the guest is asked first, and stopped after that time."""
    verb, values = "stop", dict[str, int]()
    if graceful_seconds > 0:
        verb, values = "shutdown", {"timeout": graceful_seconds, "forceStop": 1}
    ended = vm.converge(
        lambda: not vm.running(),
        lambda: vm.shared.client.post(f"{vm.path}/status/{verb}", **values),
        fence=True,
    )
    if _is_request(ended):
        _await_manager(vm, "stopped")
    elif ended is not None:
        vm.shared.restarts.ended(vm.vmid)


def _is_request(ended: Ended | None) -> bool:
    task = None if ended is None else upid.parse(ended.upid)
    return task is not None and task.kind in ("hastart", "hastop")


def _await_manager(vm: Vm, wanted: str) -> None:
    """Wait for the HA manager. Raises HypervisorError when it gives up, or past the deadline.

    It may start a VM on another node than before.
    """
    while True:
        status = _status(vm)
        if status.get("status") == wanted:
            return
        managed = status.get("ha") or {}
        if managed.get("state") == "error" or not managed.get("managed"):
            raise HypervisorError(
                Category.CREATION_FAILED,
                f"High availability was asked to have {vm} {wanted}, and it is not.",
                remedy=f"as root on {vm.node}: ha-manager set vm:{vm.vmid} --state disabled",
            )
        vm.work.pause(MANAGER_LOOK_SECONDS)


def _status(vm: Vm) -> Mapping[str, Any]:
    try:
        return vm.status()
    except ApiError as error:
        if not error.no_config or vm.locate() is None:
            raise
        return vm.status()


def reboot(vm: Vm, graceful_seconds: int) -> str:
    """Restart it; return how: ``soft``; if that wasn't asked, or the guest didn't react,
    ``reset``, or ``hard``, that is with a new QEMU."""
    if graceful_seconds > 0 and vm.running():
        vm.await_clean_up()
        vm.fence()
        try:
            vm.task(
                lambda: vm.shared.client.post(f"{vm.path}/status/reboot", timeout=graceful_seconds)
            )
        except ApiError as error:
            if error.category not in (Category.TASK_TIMEOUT, Category.UNKNOWN_OUTCOME):
                raise
            vm.work.report(soft_reboot=error.message)
        else:
            start(vm, look_first=True)
            return "soft"
    if resets.suffices(vm) and resets.reset(vm):
        start(vm, look_first=True)
        return "reset"
    stop(vm, 0)
    start(vm, look_first=True)
    return "hard"
