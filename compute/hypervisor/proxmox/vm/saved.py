"""Pause and suspend of one VM, and the ways back, each seen done.

A paused VM still has its process; a suspended VM is stopped, with its memory in a volume and the
lock ``suspended``, which starts and removals ignore.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.failures import Verdict
from common.messages.reports import Category
from common.resources.states import PowerState
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster import locks, saved_state
from compute.hypervisor.proxmox.cluster.vmid import Config, Vm
from compute.hypervisor.proxmox.vmconfig import power_states

#: the lock of a VM whose memory is being written; it remains after a failure
SUSPENDING = "suspending"


def pause(vm: Vm) -> None:
    """Pause it and see it paused. Raises HypervisorError if it has no process."""
    _bring(vm, PowerState.PAUSED, "suspend")


def unpause(vm: Vm) -> None:
    """Let it run and see it running. Raises HypervisorError if it has no process."""
    _bring(vm, PowerState.RUNNING, "resume")


def _bring(vm: Vm, wanted: PowerState, verb: str) -> None:
    try:
        vm.converge(
            lambda: _seen_with_process(vm, vm.status()) is wanted,
            lambda: vm.shared.client.post(f"{vm.path}/status/{verb}"),
            fence=True,
        )
    except ApiError as error:
        # By that lock Proxmox VE takes its memory for saved, and starts it.
        lock = (vm.look() or {}).get("lock")
        if lock != power_states.SUSPENDED or error.remedy is not None:
            raise
        raise locks.stuck(vm.shared, vm.node, vm.vmid, lock) from error


def suspend(vm: Vm) -> None:
    """Save its memory to disk and see it suspended.

    Raises HypervisorError before anything is touched if that can't be done.
    """
    status: dict[str, Any] = {}

    def done() -> bool:
        status.update(vm.status())
        if power_states.current(status) is PowerState.SUSPENDED:
            return True
        _seen_with_process(vm, status)
        return False

    def save() -> Any:
        where = _check(vm, vm.fence(), status)
        return vm.shared.client.post(f"{vm.path}/status/suspend", todisk=1, **where)

    try:
        ended = vm.converge(done, save)
    except ApiError as error:
        raise _left_locked(vm, error) or _in_backup(vm, error) or error from error
    if ended is not None:
        vm.shared.restarts.ended(vm.vmid)


def resume(vm: Vm) -> None:
    """Start it from its saved memory and see it running. Raises HypervisorError if it has none."""

    status: dict[str, Any] = {}

    def done() -> bool:
        status.update({"lock": None, **vm.status()})
        seen = power_states.current(status)
        if seen is PowerState.SHUTDOWN:
            raise HypervisorError(
                Category.CONFIGURATION,
                f"{vm} is stopped and has no saved memory any more.",
                verdict=Verdict.FATAL,
            )
        return seen in (PowerState.RUNNING, PowerState.PAUSED)

    posted: list[float] = []

    def post() -> Any:
        posted.append(vm.shared.restarts.now())
        return vm.shared.client.post(f"{vm.path}/status/resume")

    ended = vm.converge(done, post, fence=True)
    if ended is not None:
        vm.shared.restarts.started(vm.vmid, posted[-1])
    elif status["lock"] == power_states.SUSPENDED:
        complete(vm)


def complete(vm: Vm) -> None:
    """Discard the saved memory of a VM that runs again, where its resume didn't get to that.

    Until then Proxmox VE refuses to stop it, as the lock is still there: qemu-server removes
    volume and lock after the process runs, and that can fail.
    """
    vm.await_tasks()
    discard(vm)


def discard(vm: Vm) -> None:
    """Discard its saved memory, so that its next start boots it."""

    def look() -> Config:
        return vm.look() or {}

    def delete() -> Any:
        config = vm.fence()
        digest = {"digest": config["digest"]} if "digest" in config else {}
        return vm.shared.client.post(f"{vm.path}/config", delete="vmstate", **digest)

    vm.converge(lambda: look().get("lock") != power_states.SUSPENDED, delete)


def _seen_with_process(vm: Vm, status: Mapping[str, Any]) -> PowerState:
    """Return its power state. Raises HypervisorError if it has no process."""
    seen = power_states.current(status)
    if seen not in (PowerState.RUNNING, PowerState.PAUSED):
        raise HypervisorError(
            Category.CONFIGURATION, f"{vm} does not run: it is {seen.name}.", verdict=Verdict.FATAL
        )
    return seen


def _check(vm: Vm, config: Config, status: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameter with the storage for its memory. Raises HypervisorError."""
    refused = saved_state.refusal(vm.shared, vm.node, config, status)
    if refused is not None:
        raise HypervisorError(
            Category.CONFIGURATION,
            f"{vm} can't be suspended to disk. {refused} It was not touched.",
            verdict=Verdict.FATAL,
        )
    storage = saved_state.storage(vm.shared, vm.node, config)
    return {} if storage is None else {"statestorage": storage.name}


def _left_locked(vm: Vm, error: ApiError) -> HypervisorError | None:
    """Return the error that names the lock which a failed save left; None: there is none.

    Only root can clear it, and the VM is still running.
    """
    config = vm.look()
    if config is None or config.get("lock") != SUSPENDING:
        return None
    return HypervisorError(
        error.category,
        f"{error.message} {vm} is still running, and locked ({SUSPENDING}).",
        upid=error.upid,
        log_tail=error.log_tail,
        left=(f"{vm}: locked ({SUSPENDING})",),
        remedy=f"as root on {vm.node}: qm unlock {vm.vmid}",
        verdict=Verdict.FATAL,
        owner_message=error.owner_message,
    )


def _in_backup(vm: Vm, error: ApiError) -> HypervisorError | None:
    """Return the error that names the lock of a backup that doesn't run; None: another error.

    Proxmox VE doesn't name it.
    """
    if not error.locked or error.remedy is None:
        return None
    lock = (vm.look() or {}).get("lock")
    return None if lock is None else locks.stuck(vm.shared, vm.node, vm.vmid, str(lock))
