"""Give a cluster what a user uploaded as an image, or take it away again."""

from __future__ import annotations

from common.messages.commands import RemoveImage, StoreImage
from common.messages.reports import Category, Outcome, Removed
from compute.commands.image_source import ImageSource
from compute.commands.job import Job
from compute.commands.steps import Step, carry_out
from compute.hypervisor.port import Detail, Hypervisor, HypervisorError


def store(job: Job, hypervisor: Hypervisor, command: StoreImage) -> Outcome:
    """Store the image, until its size is listed. The next attempt continues after a failure."""
    source = ImageSource(command, job.check_time, job.pause)
    step = Step("compute_store_image", lambda: hypervisor.store_image(job, command, source.pieces))
    failure = carry_out(job, (step,))
    return Outcome(failure is None, failure)


def remove(job: Job, hypervisor: Hypervisor, command: RemoveImage) -> Removed:
    """Remove the image, until it is seen gone. An absent one counts as removed."""

    def have() -> Detail:
        removal = hypervisor.remove_image(job, command)
        if not removal.gone:
            raise HypervisorError(
                Category.STORAGE_CONFLICT, f"{command.volid} is still there.", left=removal.left
            )
        return {"cleaned": list(removal.cleaned)}

    failure = carry_out(job, (Step("compute_remove_image", have),))
    return Removed(failure is None, failure, gone=failure is None)
