"""Filters by server group: may the server share this host with others of its group?

The facts may be old: the conductor decides when it commits the host.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from common.messages.scheduling import RequestSpec
from common.resources.server_groups import Policy, taken
from scheduler.columnar.forms import Refused, for_all_hosts, refusing
from scheduler.columnar.reasons import Codes
from scheduler.filters import host_filter
from scheduler.hosts.columns import HostColumns, Mask
from scheduler.hosts.host import Host


def _taken(policy: Policy) -> Refused:
    def refused(columns: HostColumns, request: RequestSpec) -> Mask | None:
        group = request.group
        if group is None or group.policy != policy:
            return None

        def reason(name: str) -> str | None:
            return taken(policy, group.max_per_host, name, group.members)

        # Hosts without servers of the group are all alike.
        found = np.full(len(columns), reason("") is not None)
        for name, position in columns.positions(group.members):
            found[position] = reason(name) is not None
        return found

    return refused


@host_filter(after="volume_reach", words="no server of the affinity group")
@refusing(_taken(Policy.AFFINITY), same_reason=for_all_hosts)
def server_group_affinity(host: Host, request: RequestSpec) -> str | None:
    """Refuse hosts other than that of the group's servers."""
    return _refused(host, request, Policy.AFFINITY)


def _members(columns: HostColumns, request: RequestSpec) -> Iterable[Codes]:
    found = np.zeros(len(columns), np.int64)
    members = request.group.members if request.group is not None else {}
    for name, position in columns.positions(members):
        found[position] = members[name]
    return [found]


@host_filter(after="server_group_affinity", words="enough servers of the anti-affinity group")
@refusing(_taken(Policy.ANTI_AFFINITY), same_reason=_members)
def server_group_anti_affinity(host: Host, request: RequestSpec) -> str | None:
    """Refuse hosts that have as many of the group's servers as its rule allows."""
    return _refused(host, request, Policy.ANTI_AFFINITY)


def _refused(host: Host, request: RequestSpec, policy: Policy) -> str | None:
    group = request.group
    if group is None or group.policy != policy:
        return None
    return taken(policy, group.max_per_host, host.name, group.members)
