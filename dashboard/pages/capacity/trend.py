"""A year's trend of the cloud's capacity, as Proxmox VE recorded it of nodes and storages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, NUMBERS, Call, Missing, rows, segment
from dashboard.drawing import charts, trends
from dashboard.page import Page
from dashboard.rights import May
from dashboard.visit import Visit

#: nodes and storages that are summed up at the most: each is a question to an agent
MOST = 8
_LOOKED_AT = 1000
_STORAGES = charts.Drawing("Storages", (("used", "in use"),), top="total")
_MEMORY = charts.Drawing("Memory", (("memory_used", "in use"),), top="memory")


def show(visit: Visit) -> Answer:
    """Show how the use of storages and memory grew in a year."""
    storages, nodes = visit.cloud.together(
        Call(COMPUTE, "/storages", {"limit": _LOOKED_AT}, optional=True),
        Call(COMPUTE, "/os-hypervisors/detail", {"limit": _LOOKED_AT}, version=NUMBERS),
    )
    takes = [one for one in rows(storages, "storages") if "images" in one["content"]]
    largest = _largest(takes, "total_gib")
    hosts = _largest(rows(nodes, "hypervisors"), "memory_mb")
    asked = [
        *(_year(one["host"], one["name"]) for one in largest),
        *(_year(one["hypervisor_hostname"]) for one in hosts),
    ]
    answers = visit.cloud.together(*asked) if asked else []
    of_storages, of_hosts = answers[: len(largest)], answers[len(largest) :]
    found = [
        *_drawn(_STORAGES, of_storages, ("used", "total")),
        *_drawn(_MEMORY, of_hosts, ("memory_used", "memory")),
    ]
    return view(
        "trend.html",
        charts=found,
        box=(charts.WIDTH, charts.HEIGHT),
        counts=[
            ("storages", len(largest), len(takes)),
            ("nodes", len(hosts), len(rows(nodes, "hypervisors"))),
        ],
        missing=sorted({one.message for one in answers if isinstance(one, Missing)}),
    )


def _largest(found: Iterable[Mapping[str, Any]], size: str) -> list[Mapping[str, Any]]:
    return sorted(found, key=lambda one: -int(one[size]))[:MOST]


def _year(host: str, storage: str | None = None) -> Call:
    query = {"period": "year", "storage": storage}
    return Call(COMPUTE, f"/hosts/{segment(host)}/metrics", query, optional=True)


def _drawn(
    drawing: charts.Drawing, answers: Iterable[Any], names: tuple[str, ...]
) -> list[charts.Chart]:
    known, times = trends.summed((one["metrics"] for one in answers if one), names)
    return list(charts.charts([drawing], known, times))


PAGES = (Page("/trend", show, May.OPERATE, calls=2 + 2 * MOST),)
