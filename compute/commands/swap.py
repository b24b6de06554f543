"""Swap: give a VM another root disk, or a rescue disk; on failure it is as it was.

The old disk remains beside the new one until the conductor sends ``EndSwap``.
"""

from __future__ import annotations

import functools

from common.messages.commands import EndSwap, Swap
from common.messages.reports import Built, Category, VmSeen
from common.resources.states import PowerState
from compute.commands import configdrive
from compute.commands.job import Job
from compute.commands.steps import Step, carry_out
from compute.commands.vm_steps import find, seen
from compute.hypervisor.port import Detail, HypervisorError, Machine, Removal


def swap(job: Job, machine: Machine, command: Swap, graceful_seconds: int) -> Built:
    """Run the steps; the outcome has the last power state seen."""

    def stop() -> Detail:
        if machine.disks.swapped(command):
            # An earlier run of this command came as far.
            return {"swapped": True}
        return machine.stop(graceful_seconds)

    def check() -> Detail:
        if job.only_look:
            # What the check asks for may be gone since the swap.
            return {"skipped": "it only looks"}
        return machine.disks.check(command)

    def start(running: bool) -> Detail:
        return machine.start() if running else {"power_state": PowerState.SHUTDOWN.name}

    def start_again() -> Removal:
        start(command.running)
        return Removal(True)

    def give_back() -> Removal:
        machine.stop(0)
        return machine.disks.give_back()

    steps = (
        Step("compute_find_vm", lambda: find(machine)),
        Step("compute_check_host", check),
        Step("compute_stop_vm", stop, start_again, "compute_start_vm_again"),
        # Its undo is that of the new disk, too, whose step comes later.
        Step(
            "compute_upload_config_drive",
            lambda: _upload(machine, command),
            give_back,
            "compute_give_disk_back",
        ),
    )
    rebuild = (
        Step("compute_rebuild_instance", lambda: machine.disks.swap(command)),
        *_grown(machine, command),
        Step("compute_start_vm", lambda: start(command.running)),
    )
    rescue = (
        Step("compute_rescue_instance", lambda: machine.disks.swap(command)),
        Step("compute_start_vm", machine.start),
    )
    failure = carry_out(job, (*steps, *(rescue if command.rescue else rebuild)))
    return Built(failure is None, failure, power_state=seen(machine))


def _grown(machine: Machine, command: Swap) -> tuple[Step, ...]:
    """Return the step that grows the new disk; none of a volume, which has its own size."""
    if command.root is not None:
        return ()
    return (Step("compute_resize_disk", lambda: machine.grow_disk(command.disk_gib)),)


def end_swap(job: Job, machine: Machine, command: EndSwap) -> VmSeen:
    """Remove what the VM had before, or give it back and remove what is new."""
    # An undo that may only look checks which disk the VM has. The outcome says whether it runs.
    only_disk = job.only_look and not command.rescued

    def start() -> Detail:
        if only_disk:
            return {"skipped": "it only looks"}
        return machine.start() if command.running else {"power_state": PowerState.SHUTDOWN.name}

    find_vm = Step("compute_find_vm", lambda: find(machine))
    give_back_name = "compute_unrescue_instance" if command.rescued else "compute_give_disk_back"
    let_go = (Step("compute_remove_old_disk", lambda: _gone(machine.disks.let_go())),)

    def stop() -> Detail:
        if only_disk or not machine.disks.has_former(rescued=command.rescued):
            return {"skipped": "it has what it had"}
        return machine.stop(0)

    give_back = (
        Step("compute_stop_vm", stop),
        Step(give_back_name, lambda: _gone(machine.disks.give_back(rescued=command.rescued))),
        Step("compute_start_vm", start),
    )
    failure = carry_out(job, (find_vm, *(let_go if command.keep else give_back)))
    return VmSeen(failure is None, failure, seen(machine))


def _upload(machine: Machine, command: Swap) -> Detail:
    if command.config_drive is None:
        return {"skipped": "no config drive asked"}
    if machine.disks.swapped(command):
        return {"swapped": True}
    return machine.disks.upload(
        command, functools.partial(configdrive.image, command.config_drive)
    )


def _gone(removal: Removal) -> Detail:
    if not removal.gone:
        raise HypervisorError(
            Category.UNKNOWN_OUTCOME,
            f"Not removed: {', '.join(removal.left)}.",
            left=removal.left,
            remedy=removal.remedy,
        )
    return {"cleaned": list(removal.cleaned)}
