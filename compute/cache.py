"""Cache: make an image ready on a host ahead of any build, as a build would."""

from __future__ import annotations

from common.messages.commands import CacheImage
from common.messages.reports import Outcome
from common.states import PowerState
from compute.hypervisor.port import Machine
from compute.job import Job
from compute.steps import Step, carry_out


def cache(job: Job, machine: Machine, command: CacheImage) -> Outcome:
    """Have the image's template. One that is there already is fine."""
    step = Step("compute_ensure_image", lambda: machine.ensure_image(command))
    failure = carry_out(job, (step,))
    return Outcome(failure is None, PowerState.NOSTATE, failure=failure)
