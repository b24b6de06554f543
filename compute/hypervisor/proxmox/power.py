"""Start, stop and reboot of one VM, each seen done."""

from __future__ import annotations

from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.errors import ApiError
from compute.hypervisor.proxmox.vm import Vm


def start(vm: Vm, *, look_first: bool) -> None:
    """Run it and see it running. Raises HypervisorError when it doesn't."""
    vm.converge(
        vm.running,
        lambda: vm.shared.client.post(f"{vm.path}/status/start"),
        look_first=look_first,
        fence=True,
    )
    if not vm.running():
        raise HypervisorError(
            Category.CREATION_FAILED, f"{vm} does not run after its start task ended well."
        )


def stop(vm: Vm, graceful_seconds: int) -> None:
    """Have it off. With seconds the guest is asked first and made to after that time."""
    if graceful_seconds > 0:
        vm.converge(
            lambda: not vm.running(),
            lambda: vm.shared.client.post(
                f"{vm.path}/status/shutdown", timeout=graceful_seconds, forceStop=1
            ),
            fence=True,
        )
        return
    vm.converge(
        lambda: not vm.running(),
        lambda: vm.shared.client.post(f"{vm.path}/status/stop"),
        fence=True,
    )


def reboot(vm: Vm, graceful_seconds: int) -> str:
    """Restart it; how: ``soft``, or ``hard`` where that was asked or the guest didn't listen."""
    if graceful_seconds > 0 and vm.running():
        vm.fence()
        try:
            vm.task(
                lambda: vm.shared.client.post(f"{vm.path}/status/reboot", timeout=graceful_seconds)
            )
        except ApiError as error:
            if error.category not in (Category.TASK_TIMEOUT, Category.UNKNOWN_OUTCOME):
                raise
            vm.work.tell(soft_reboot=error.message)
        else:
            start(vm, look_first=True)
            return "soft"
    stop(vm, 0)
    start(vm, look_first=True)
    return "hard"
