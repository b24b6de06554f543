"""A year's trend of the cloud's capacity, as Proxmox VE recorded it of nodes and storages."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from common import clock
from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, Call, Missing, following, rows, segment
from dashboard.drawing import charts, trends
from dashboard.gathered import Gathered, Source
from dashboard.page import Page
from dashboard.rights import May
from dashboard.visit import Visit

#: nodes and storages that a page asks for at the most: each is a question to an agent
MOST = 16
#: pages of a list that are read once a day
_LISTED = 10
_ROWS = 1000
REFRESH_SECONDS = 2
_DRAWINGS = {
    "storages": charts.Drawing("Storages", (("used", "in use"),), limit="total"),
    "nodes": charts.Drawing(
        "Memory that the nodes use", (("memory_used", "in use"),), limit="memory"
    ),
}
#: the metrics that are summed up of each kind
_METRICS: Mapping[str, tuple[str, ...]] = {
    "storages": ("used", "total"),
    "nodes": ("memory_used", "memory"),
}
#: a question that only those are answered who may see all of this
_ALLOWED = Call(COMPUTE, "/os-hypervisors", {"limit": 1})


def show(visit: Visit) -> Answer:
    """Show how the use of storages and memory grew in a year."""
    visit.cloud.send(_ALLOWED)
    day = clock.utcnow().date().isoformat()
    gathered = visit.days.of(day, lambda: _begin(visit))
    missing = _ask(visit, gathered)
    known = {kind: gathered.known(kind) for kind in _METRICS}
    return view(
        "trend.html",
        charts=[one for kind, found in known.items() for one in _drawn(kind, found.sum)],
        box=(charts.WIDTH, charts.HEIGHT),
        counts=[(kind, one.counted, one.total) for kind, one in known.items()],
        is_open=gathered.is_open,
        is_cut=gathered.is_cut,
        refresh_seconds=REFRESH_SECONDS,
        missing=missing,
    )


def _begin(visit: Visit) -> Gathered:
    """Return all storages that take disks, a shared one once, and all nodes."""
    storages, more_storages = _all(visit, Call(COMPUTE, "/storages", optional=True), "storages")
    nodes, more_nodes = _all(visit, Call(COMPUTE, "/os-hypervisors"), "hypervisors")
    sources = [
        Source("storages", str(one["host"]), str(one["name"]))
        for one in storages
        if "images" in one["content"]
    ]
    sources += [Source("nodes", str(one["hypervisor_hostname"])) for one in nodes]
    return Gathered(sources, _add, is_cut=more_storages or more_nodes)


def _all(visit: Visit, call: Call, key: str) -> tuple[list[Mapping[str, Any]], bool]:
    """Return the rows of a list's first pages, and whether there are more."""
    found: list[Mapping[str, Any]] = []
    marker = ""
    for _ in range(_LISTED):
        query = {"limit": _ROWS, "marker": marker}
        answer = visit.cloud.send(dataclasses.replace(call, query=query))
        found += rows(answer, key)
        marker = following(answer, key)
        if not marker:
            break
    return found, bool(marker)


def _ask(visit: Visit, gathered: Gathered) -> list[str]:
    """Ask for some of what isn't known; return why some has no answer."""
    sources = gathered.take(MOST)
    if not sources:
        return []
    try:
        answers = visit.cloud.together(*map(_year, sources))
    except BaseException:
        # Whatever ends this page, others ask what it took; it is raised again.
        gathered.give_back(sources)
        raise
    gathered.add(list(zip(sources, answers, strict=True)))
    return sorted({one.message for one in answers if isinstance(one, Missing)})


def _year(source: Source) -> Call:
    query = {"period": "year", "storage": source.storage}
    return Call(COMPUTE, f"/hosts/{segment(source.host)}/metrics", query, optional=True)


def _add(
    kind: str, present: Mapping[str, Any] | None, answers: Sequence[Any]
) -> Mapping[str, Any]:
    """Return the sum of a kind with the measurements of answers."""
    found = [one["metrics"] for one in answers]
    return trends.merged([present or trends.NOTHING, *found], _METRICS[kind])


def _drawn(kind: str, whole: Mapping[str, Any] | None) -> list[charts.Chart]:
    known, times = trends.summed([whole] if whole else [], _METRICS[kind])
    return list(charts.charts([_DRAWINGS[kind]], known, times))


PAGES = (Page("/trend", show, May.OPERATE, calls=1 + 2 * _LISTED + MOST),)
