"""Shape: a VM gets another size, and runs again if it ran; on failure it is as it was."""

from __future__ import annotations

from common.messages.commands import Grow, Shape, Size
from common.messages.reports import VmSeen
from common.resources.states import PowerState
from compute.commands.job import Job
from compute.commands.steps import Step, carry_out
from compute.commands.vm_steps import find, seen
from compute.hypervisor.port import Detail, Machine, Removal


def shape(job: Job, machine: Machine, command: Shape, graceful_seconds: int) -> VmSeen:
    """Run the steps; the outcome has the last power state seen."""

    def start() -> Detail:
        return machine.start() if command.running else {"power_state": PowerState.SHUTDOWN.name}

    def start_again() -> Removal:
        start()
        return Removal(True)

    def give(size: Size, former: Size) -> Detail:
        return machine.shape(size, former, command.image_properties)

    def is_shaped() -> bool:
        return machine.shaped(command.size, command.former, command.image_properties)

    def give_back() -> Removal:
        machine.stop(0)
        give(command.former, command.size)
        return Removal(True)

    def stop() -> Detail:
        if is_shaped():
            # An earlier run of this command came as far.
            return {"shaped": True}
        return machine.stop(graceful_seconds)

    def give_new() -> Detail:
        if is_shaped():
            return {"shaped": True}
        return give(command.size, command.former)

    steps = (
        Step("compute_find_vm", lambda: find(machine)),
        Step("compute_stop_vm", stop, start_again, "compute_start_vm_again"),
        Step("compute_resize_instance", give_new, give_back, "compute_shape_back"),
        Step("compute_finish_resize", start),
    )
    failure = carry_out(job, steps)
    return VmSeen(failure is None, failure, seen(machine))


def grow(job: Job, machine: Machine, command: Grow) -> VmSeen:
    """Grow the root disk and fit the other local disks, whether the VM runs or not."""
    steps: tuple[Step, ...] = (
        Step("compute_find_vm", lambda: find(machine)),
        Step("compute_resize_disk", lambda: machine.grow_disk(command.disk_gib)),
    )
    wanted = command.local_disks
    if wanted is not None:
        steps += (Step("compute_fit_local_disks", lambda: machine.fit_local_disks(wanted)),)
    failure = carry_out(job, steps)
    return VmSeen(failure is None, failure, seen(machine))
