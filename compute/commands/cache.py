"""Make an image's template on a host ahead of any build."""

from __future__ import annotations

from common.messages.commands import CacheImage
from common.messages.reports import Built, Category
from compute.commands.job import Job
from compute.commands.steps import Step, carry_out
from compute.hypervisor.port import Detail, HypervisorError, Machine


def cache(job: Job, machine: Machine, command: CacheImage) -> Built:
    """Ensure that the image's template exists."""

    def have() -> Detail:
        detail = machine.ensure_image(command)
        taken = detail.get("template_taken")
        if taken is not None:
            # A build would import the image instead; without a build there is nothing to do.
            raise HypervisorError(Category.CREATION_FAILED, f"There is no template: {taken}.")
        return detail

    failure = carry_out(job, (Step("compute_ensure_image", have),))
    return Built(failure is None, failure)
