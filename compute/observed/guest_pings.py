"""Asks the agent in a guest whether it answers, for checks of groups' members."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from common.messages.guests import GuestTarget, PasswordProblem
from common.messages.health import GuestCheck
from compute.hypervisor.port import Hypervisor, HypervisorError
from compute.observed.health_checks import Unknown

#: why an agent does not answer → the sentence
_SAYS: Mapping[PasswordProblem, str] = {
    PasswordProblem.SILENT: "The agent in the guest does not answer.",
    PasswordProblem.STOPPED: "Its VM does not run.",
}
#: why it can't be asked; others: its host does not allow it
_CAN_T: Mapping[PasswordProblem, str] = {
    PasswordProblem.NO_AGENT: "its VM has no channel to it (hw_qemu_guest_agent of the image).",
}
_NOT_ALLOWED = "its host does not allow it."


def of(hypervisors: Mapping[str, Hypervisor], worker: str) -> Callable[[GuestCheck], str]:
    """Return the function that asks through the drivers of these clusters."""

    def ping(asked: GuestCheck) -> str:
        target = GuestTarget(
            *(asked.server_uuid, worker, asked.cluster, asked.node, asked.vmid),
        )
        try:
            problem = hypervisors[asked.cluster].ping_guest(target)
        except HypervisorError as error:
            raise Unknown(f"The agent in the guest can't be asked: {error.message}") from error
        if problem is None:
            return ""
        if problem not in _SAYS:
            why = _CAN_T.get(problem, _NOT_ALLOWED)
            raise Unknown(f"The agent in the guest can't be asked: {why}")
        return _SAYS[problem]

    return ping
