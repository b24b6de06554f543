"""Remove an image's cached template that nothing needs any more."""

from __future__ import annotations

from common.messages.commands import RetireTemplate
from common.messages.reports import Category, Removed
from compute.commands.job import Job
from compute.commands.steps import Step, carry_out
from compute.hypervisor.port import Detail, Hypervisor, HypervisorError


def retire(job: Job, hypervisor: Hypervisor, command: RetireTemplate) -> Removed:
    """Remove it, or report what depends on it. An absent one counts as removed."""

    def remove() -> Detail:
        removal = hypervisor.retire_template(job, command)
        if not removal.gone:
            raise HypervisorError(
                Category.LOCK,
                f"Template {command.placed.vmid} is still needed: {', '.join(removal.left)}.",
                left=removal.left,
                remedy=removal.remedy,
            )
        return {"cleaned": list(removal.cleaned)}

    failure = carry_out(job, (Step("compute_retire_template", remove),))
    return Removed(failure is None, failure, gone=failure is None)
