"""The first page: quota use, servers under way or in error, capacity, ill nodes, findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, NUMBERS, Call, rows
from dashboard.page import Page
from dashboard.pages.meters import Meter, Warns, of_hosts
from dashboard.pages.queues import PATH as QUEUES
from dashboard.visit import Visit

_SHOWN = 10
STATISTICS = Call(COMPUTE, "/os-hypervisors/statistics", optional=True, version=NUMBERS)
_FINDINGS = Call(COMPUTE, "/audit/findings", {"limit": _SHOWN}, optional=True)
METRICS = Call(COMPUTE, "/metrics", optional=True)
_UNWELL = Call(COMPUTE, QUEUES, {"unwell": "true", "limit": _SHOWN}, optional=True)


def show(visit: Visit) -> Answer:
    """Show the quota's use, servers under way and in error; to administrators also the cloud."""
    own = [
        Call(COMPUTE, "/limits"),
        Call(COMPUTE, "/servers/detail", {"limit": _SHOWN, "status": "BUILD"}),
        Call(COMPUTE, "/servers/detail", {"limit": _SHOWN, "status": "ERROR"}),
    ]
    cloud = [STATISTICS, METRICS, _FINDINGS, _UNWELL]
    limits, building, failed, *more = visit.cloud.together(
        *own, *(cloud if visit.operates else ())
    )
    statistics, metrics, findings, unwell = more or (None, None, None, None)
    return view(
        "overview.html",
        meters=list(_of_quota(limits["limits"]["absolute"])),
        building=building["servers"],
        failed=failed["servers"],
        capacity=list(capacity(statistics, metrics)),
        findings=rows(findings, "findings"),
        unwell=rows(unwell, "hosts"),
    )


def _of_quota(absolute: Mapping[str, int]) -> Iterator[Meter]:
    for title, used, limit, unit in (
        ("Servers", "totalInstancesUsed", "maxTotalInstances", ""),
        ("VCPUs", "totalCoresUsed", "maxTotalCores", ""),
        ("Memory", "totalRAMUsed", "maxTotalRAMSize", "MiB"),
    ):
        yield Meter(title, absolute.get(used, 0), absolute.get(limit, -1), unit)


def capacity(statistics: Any, metrics: Any) -> Iterator[Meter]:
    """Yield what all enabled hosts have, and how many agents are up."""
    if metrics:
        counts = {
            one["state"]: one["count"]
            for one in metrics["metrics"]["services"]
            if one["binary"] == "nova-compute"
        }
        yield Meter("Hosts up", counts.get("up", 0), sum(counts.values()), when=Warns.NOT_FULL)
    if statistics:
        yield from of_hosts(statistics["hypervisor_statistics"])


PAGES = (Page("/", show, calls=7),)
