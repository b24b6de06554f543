"""The first page: quota use, servers being built or in error, hosts and audit findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dashboard.cloud import COMPUTE, Call, rows
from dashboard.page import Answer, Page, view
from dashboard.pages.meters import Meter
from dashboard.visit import Visit

_SHOWN = 10


def show(visit: Visit) -> Answer:
    """Show the quota's use, servers under way and in error; to administrators also the cloud."""
    own = [
        Call(COMPUTE, "/limits"),
        Call(COMPUTE, "/servers/detail", {"limit": _SHOWN, "status": "BUILD"}),
        Call(COMPUTE, "/servers/detail", {"limit": _SHOWN, "status": "ERROR"}),
    ]
    cloud = [
        Call(COMPUTE, "/os-hypervisors/detail", optional=True),
        Call(COMPUTE, "/audit/findings", {"limit": _SHOWN}, optional=True),
    ]
    limits, building, failed, *more = visit.cloud.together(
        *own, *(cloud if visit.operates else ())
    )
    hosts, findings = more or (None, None)
    return view(
        "overview.html",
        meters=list(_of_quota(limits["limits"]["absolute"])),
        building=building["servers"],
        failed=failed["servers"],
        capacity=_of_hosts(hosts["hypervisors"]) if hosts else [],
        hosts=rows(hosts, "hypervisors"),
        findings=rows(findings, "findings"),
    )


def _of_quota(absolute: Mapping[str, int]) -> Iterator[Meter]:
    for title, used, limit, unit in (
        ("Servers", "totalInstancesUsed", "maxTotalInstances", ""),
        ("VCPUs", "totalCoresUsed", "maxTotalCores", ""),
        ("Memory", "totalRAMUsed", "maxTotalRAMSize", "MiB"),
    ):
        yield Meter(title, absolute.get(used, 0), absolute.get(limit, -1), unit)


def _of_hosts(hosts: list[dict[str, Any]]) -> list[Meter]:
    up = sum(one.get("state") == "up" for one in hosts)
    return [Meter("Hosts up", up, len(hosts), warns_when_full=False)]


PAGES = (Page("/", show, calls=5),)
