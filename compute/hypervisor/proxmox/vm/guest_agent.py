"""What is asked of the QEMU guest agent in a VM."""

from __future__ import annotations

import re
from collections.abc import Mapping

from common.messages.guests import GuestTarget, PasswordProblem
from common.messages.questions import SetPassword
from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster import proven
from compute.hypervisor.proxmox.cluster.shared import Shared

#: what Proxmox VE takes
PASSWORD_LENGTHS = range(5, 1025)

#: its words for a guest that can't be asked
_SAYS: Mapping[re.Pattern[str], PasswordProblem] = {
    re.compile(r"guest agent is not running"): PasswordProblem.SILENT,
    re.compile(r"No QEMU guest agent configured"): PasswordProblem.NO_AGENT,
    re.compile(r"VM [0-9]+ (is )?not running"): PasswordProblem.STOPPED,
}


def set_password(shared: Shared, order: SetPassword) -> PasswordProblem | None:
    """See ``port.Hypervisor``. An agent that doesn't answer a ping is never asked for more."""
    target = order.target
    if len(order.password) not in PASSWORD_LENGTHS:
        return PasswordProblem.TOO_SHORT
    proven.config(shared, target.node, target.vmid, target.server_uuid)
    problem = ping(shared, target)
    if problem is not None:
        return problem
    try:
        shared.client.post(
            f"{_path(target)}/set-user-password", username=order.user, password=order.password
        )
    except ApiError as error:
        return _problem(error) or _refusal(error)
    return None


def ping(shared: Shared, target: GuestTarget) -> PasswordProblem | None:
    """See ``port.Hypervisor.ping_guest``."""
    try:
        shared.client.post(f"{_path(target)}/ping")
    except ApiError as error:
        problem = _problem(error)
        if problem is None:
            raise
        return problem
    return None


def _path(target: GuestTarget) -> str:
    return f"nodes/{target.node}/qemu/{target.vmid}/agent"


def _problem(error: ApiError) -> PasswordProblem | None:
    if error.category is Category.AUTHORIZATION:
        return PasswordProblem.NOT_SUPPORTED
    return next((found for said, found in _SAYS.items() if said.search(error.text)), None)


def _refusal(error: ApiError) -> PasswordProblem:
    """Return what an error at the write means.

    Its text isn't passed on: it may quote what was sent. Raises HypervisorError where nothing can
    have reached the guest.
    """
    if error.category is Category.UNKNOWN_OUTCOME:
        return PasswordProblem.UNKNOWN
    if error.category is Category.NODE_UNHEALTHY:
        raise HypervisorError(error.category, "The node does not answer.") from None
    return PasswordProblem.REFUSED
