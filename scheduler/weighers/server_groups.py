"""Prefer hosts with many, or few, servers of the same group: the soft policies."""

from __future__ import annotations

import numpy as np

from common.messages.scheduling import RequestSpec
from common.resources.server_groups import Policy
from scheduler.columnar.forms import Weighed, weighing
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.hosts.host_states import Floats


def _weighed(policy: Policy, sign: int) -> Weighed:
    def weighed(columns: HostColumns, request: RequestSpec) -> Floats | None:
        group = request.group
        if group is None or group.policy != policy:
            return None
        found = np.zeros(len(columns))
        for name, position in columns.positions(group.members):
            found[position] = sign * group.members[name]
        return found

    return weighed


@weighing(_weighed(Policy.SOFT_AFFINITY, 1))
def soft_affinity(host: Host, request: RequestSpec) -> float:
    """Return how many servers of a soft-affinity group are here."""
    return _members(host, request, Policy.SOFT_AFFINITY)


@weighing(_weighed(Policy.SOFT_ANTI_AFFINITY, -1))
def soft_anti_affinity(host: Host, request: RequestSpec) -> float:
    """Return minus the number of servers of a soft-anti-affinity group here."""
    return -_members(host, request, Policy.SOFT_ANTI_AFFINITY)


def _members(host: Host, request: RequestSpec, policy: Policy) -> float:
    group = request.group
    if group is None or group.policy != policy:
        return 0.0
    return float(group.members.get(host.name, 0))
