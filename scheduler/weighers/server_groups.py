"""Prefer hosts with many, or few, servers of the same group: the soft policies."""

from __future__ import annotations

from common.messages.scheduling import Requested
from common.server_groups import Policy
from scheduler.hosts import Host


def soft_affinity(host: Host, request: Requested) -> float:
    """How many servers of a soft-affinity group are here."""
    return _members(host, request, Policy.SOFT_AFFINITY)


def soft_anti_affinity(host: Host, request: Requested) -> float:
    """Minus how many servers of a soft-anti-affinity group are here."""
    return -_members(host, request, Policy.SOFT_ANTI_AFFINITY)


def _members(host: Host, request: Requested, policy: Policy) -> float:
    group = request.group
    if group is None or group.policy != policy:
        return 0.0
    return float(group.members.get(host.name, 0))
