"""The owner mark: set on an adopted VM, removed from an unmanaged one."""

from __future__ import annotations

from common.messages.commands import Mark
from common.messages.reports import Marked
from common.resources.states import PowerState
from compute.commands.job import Job
from compute.commands.steps import Step, carry_out
from compute.hypervisor.port import HypervisorError, OwnerMark


def mark(job: Job, owner_mark: OwnerMark, command: Mark) -> Marked:
    """Run the one step; ``gone``: the VM was seen without the server's mark."""
    if command.again:
        step = Step("compute_mark_vm", owner_mark.mark_again)
    elif command.on:
        step = Step("compute_mark_vm", lambda: owner_mark.mark(command.smbios_uuid))
    else:
        step = Step("compute_unmark_vm", owner_mark.unmark)
    failure = carry_out(job, (step,))
    if failure is None and command.start:
        # A VM that can't be started is adopted nevertheless, as it is.
        carry_out(job, (Step("compute_start_vm", owner_mark.start),))
    power, gone = PowerState.NOSTATE, False
    try:
        gone = not owner_mark.marked()
        if not gone:
            power = owner_mark.power_state()
    except HypervisorError as error:
        job.journal.note(None, {"probe": error.message})
    return Marked(failure is None and gone != command.on, failure, gone, power)
