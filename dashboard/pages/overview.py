"""The first page: the quota and what is under way; to administrators the whole cloud."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, Call, Missing, following, rows
from dashboard.page import Page
from dashboard.pages.ledger.operations import ACTIVITY, OLDEST_OPEN, Entry, entries
from dashboard.pages.meters import CLAIMED, STORED, Meter, Warns, of_amount
from dashboard.pages.queues import PATH as QUEUES
from dashboard.visit import Visit

_SHOWN = 10
_WAITING = 5
TOTAL = Call(COMPUTE, "/capacity/total", optional=True)
METRICS = Call(COMPUTE, "/metrics", optional=True)
_FINDINGS = Call(COMPUTE, "/audit/findings", {"limit": _SHOWN}, optional=True)
_DOWN = Call(COMPUTE, QUEUES, {"state": "down", "limit": _SHOWN}, optional=True)
_UNWELL = Call(COMPUTE, QUEUES, {"state": "up", "unwell": "true", "limit": _SHOWN}, optional=True)
_WAITS = Call(COMPUTE, "/operations", {**OLDEST_OPEN, "limit": _WAITING}, optional=True)


@dataclass(frozen=True)
class Tile:
    """A number of the cloud that leads to what it counts."""

    title: str
    number: int
    path: str
    said: str = ""
    """More about it."""
    is_bad: bool = False
    """Whether it asks for somebody."""


def show(visit: Visit) -> Answer:
    """Show the quota's use, servers under way and in error; to administrators also the cloud."""
    whose = {"limit": _SHOWN, **({"all_tenants": 1} if visit.operates else {})}
    own = [
        Call(COMPUTE, "/limits"),
        Call(COMPUTE, "/servers/detail", {**whose, "status": "BUILD"}),
        Call(COMPUTE, "/servers/detail", {**whose, "status": "ERROR"}),
    ]
    cloud = [TOTAL, METRICS, _FINDINGS, _DOWN, _UNWELL, _WAITS] if visit.operates else []
    limits, building, failed, *more = visit.cloud.together(*own, *cloud)
    return view(
        "overview.html",
        meters=list(_of_quota(limits["limits"]["absolute"])),
        building=building["servers"],
        failed=failed["servers"],
        projects=dict(visit.session.projects),
        whole=whole(*more) if more else None,
    )


@dataclass(frozen=True)
class Whole:
    """The cloud, as administrators see it."""

    tiles: Sequence[Tile]
    capacity: Sequence[Meter]
    uncounted: int
    """Nodes whose processors and memory aren't counted."""
    findings: Sequence[Mapping[str, Any]]
    down: Sequence[Mapping[str, Any]]
    unwell: Sequence[Mapping[str, Any]]
    """Nodes that are up, with a problem."""
    more_down: str
    more_unwell: str
    """How many of either aren't listed here, in words; empty: all are."""
    waits: Sequence[Entry]
    missing: Sequence[str]
    """What isn't known, in the API's sentences."""


def whole(total: Any, metrics: Any, findings: Any, down: Any, unwell: Any, waits: Any) -> Whole:
    """Return the cloud as the APIs' answers say; any may be `Missing`."""
    answers = (total, metrics, findings, down, unwell, waits)
    return Whole(
        tiles=[*_of_nodes(total), *_of_metrics(metrics)],
        capacity=list(capacity(total)),
        uncounted=uncounted(total),
        findings=rows(findings, "findings"),
        down=list(rows(down, "hosts")),
        unwell=list(rows(unwell, "hosts")),
        more_down=_more(down, _off(total)),
        more_unwell=_more(unwell),
        waits=entries(waits),
        missing=sorted({one.message for one in answers if isinstance(one, Missing)}),
    )


def _of_nodes(total: Any) -> Iterator[Tile]:
    if total:
        found = total["total_capacity"]
        down = _off(total)
        yield Tile("Nodes that are off", down, "/nodes", f"of {found['hosts']}", down > 0)


def _off(total: Any) -> int:
    """Return how many nodes are off; 0 where that isn't known."""
    if not total:
        return 0
    found = total["total_capacity"]
    return int(found["hosts"] - found["hosts_up"])


def _more(answer: Any, number: int = 0) -> str:
    """Return how many of `number` a list leaves out; without a number only that it does."""
    if not following(answer, "hosts"):
        return ""
    return f"{max(1, number - len(answer['hosts']))} more" if number else "more"


def _of_metrics(answer: Any) -> Iterator[Tile]:
    if not answer:
        return
    found = answer["metrics"]
    servers = {one["vm_state"]: one["count"] for one in found["servers"]}
    failed, findings = servers.get("error", 0), _sum(found["findings"])
    everybody = "/servers?all_tenants=1&status"
    yield Tile("Servers in error", failed, f"{everybody}=ERROR", "", failed > 0)
    yield Tile("Servers being built", servers.get("building", 0), f"{everybody}=BUILD")
    states = ", ".join(f"{one['count']} {one['state']}" for one in found["operations"])
    yield Tile("Open operations", _sum(found["operations"]), f"{ACTIVITY}?state=open", states)
    kinds: dict[str, int] = {}
    for one in found["findings"]:
        kinds[one["severity"]] = kinds.get(one["severity"], 0) + one["count"]
    said = ", ".join(f"{count} {severity}" for severity, count in sorted(kinds.items()))
    is_bad = bool(kinds.keys() & {"leak", "damage"})
    yield Tile("Open findings", findings, "/audit", said, is_bad)


def _sum(counts: Sequence[Mapping[str, Any]]) -> int:
    return sum(one["count"] for one in counts)


def _of_quota(absolute: Mapping[str, int]) -> Iterator[Meter]:
    for title, used, limit, unit in (
        ("Servers", "totalInstancesUsed", "maxTotalInstances", ""),
        ("VCPUs", "totalCoresUsed", "maxTotalCores", ""),
        ("Memory", "totalRAMUsed", "maxTotalRAMSize", "MiB"),
    ):
        yield Meter(title, absolute.get(used, 0), absolute.get(limit, -1), unit)


def capacity(answer: Any) -> Iterator[Meter]:
    """Yield how many nodes are up, and what they and the storages have, each counted once."""
    if not answer:
        return
    found = answer["total_capacity"]
    yield Meter("Nodes up", found["hosts_up"], found["hosts"], when=Warns.NOT_FULL)
    by_class = {one["resource_class"]: one for one in found["resources"]}
    yield of_amount("VCPUs", by_class["VCPU"], "", "node", CLAIMED)
    yield of_amount("Memory", by_class["MEMORY_MB"], "MiB", "node", CLAIMED)
    yield of_storages(answer)


def of_storages(answer: Any) -> Meter:
    """Return what the storages that take disks have together."""
    found = answer["total_capacity"]["storage_gib"]
    return of_amount("Storages", found, "GiB", "storage", STORED)


def uncounted(answer: Any) -> int:
    """Return how many nodes take no servers, so that nothing of them is counted."""
    if not answer:
        return 0
    found = answer["total_capacity"]
    return int(found["hosts"] - found["hosts_taking_servers"])


PAGES = (Page("/", show, calls=9),)
