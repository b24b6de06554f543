"""The totals of a list of servers."""

from __future__ import annotations

from collections import Counter
from typing import Any

from common.resources import states
from common.resources.states import TaskState, VmState
from db.reads.servers.totals import Totals


def shown(totals: Totals) -> dict[str, Any]:
    """Return totals as the API has them: servers by status; memory in MiB, disks in GiB."""
    statuses: Counter[str] = Counter()
    for (vm_state, task), count in totals.states.items():
        statuses[states.status(VmState(vm_state), TaskState(task) if task else None)] += count
    return {
        "count": statuses.total(),
        "statuses": dict(statuses.most_common()),
        "vcpus": totals.vcpus,
        "ram": totals.memory_mib,
        "disk": totals.disk_gib,
    }
