"""May the server share this host with the others of its group?

What is known here may be old already: the conductor decides when it commits the host.
"""

from __future__ import annotations

from common.messages.scheduling import Requested
from common.server_groups import Policy, taken
from scheduler.hosts import Host


def server_group_affinity(host: Host, request: Requested) -> str | None:
    """Refuse hosts other than that of the group's servers."""
    return _refused(host, request, Policy.AFFINITY)


def server_group_anti_affinity(host: Host, request: Requested) -> str | None:
    """Refuse hosts that have as many of the group's servers as its rule allows."""
    return _refused(host, request, Policy.ANTI_AFFINITY)


def _refused(host: Host, request: Requested, policy: Policy) -> str | None:
    group = request.group
    if group is None or group.policy != policy:
        return None
    return taken(policy, group.max_per_host, host.name, group.members)
