"""Usage: how many servers, VCPUs and how much memory were in use over the last day or weeks."""

from __future__ import annotations

import dataclasses
import datetime
import heapq
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common import clock
from common.story.text import parse_time
from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, IDENTITY, Call, Cloud, following, segment
from dashboard.drawing import charts
from dashboard.drawing.series import PERIODS, Amounts, Ran, Series, Window, series
from dashboard.page import Page
from dashboard.visit import Visit

_PATH = "/os-simple-tenant-usage"
#: what a project's usage, and that of all, is called in answers
_ONE, _ALL = "tenant_usage", "tenant_usages"
_ROWS = 1000
MOST_PAGES = 20
"""Pages of the API that one of ours is made of."""
BIGGEST = 10
"""Projects in the table of those that used most."""


@dataclass(frozen=True)
class Measure:
    """One of the amounts."""

    title: str
    hours: str
    """What an hour of it is called."""
    unit: str = ""
    divisor: int = 1
    drawn_in: str = "count"
    """The unit of the chart."""
    one_is: int = 1
    """How many of them an amount of one is."""

    def text(self, amount: float) -> str:
        """Return an amount in its unit, with two decimals at the most."""
        return _decimal(amount / self.divisor, 2)

    def rough(self, amount: float) -> str:
        """Return an amount in its unit, with three digits and all before the point."""
        number = amount / self.divisor
        return _decimal(number, 0 if number >= 100 else 1 if number >= 10 else 2)


#: in the order of `Amounts`
MEASURES = (
    Measure("Servers", "server hours"),
    Measure("VCPUs", "VCPU hours"),
    Measure("Memory", "GiB hours", "GiB", 1024, "bytes", 1 << 20),
)
#: sums of a project, in the same order
_VCPUS = 1
_SUMS = ("total_hours", "total_vcpus_usage", "total_memory_mb_usage")


@dataclass
class Used:
    """What a project's servers used."""

    project_id: str
    hours: list[float] = field(default_factory=lambda: [0.0] * len(MEASURES))
    """By measure; of memory in MiB."""
    servers: list[Ran] = field(default_factory=list)

    def add(self, usage: Mapping[str, Any]) -> None:
        """Count a page's part of it, too."""
        for position, name in enumerate(_SUMS):
            self.hours[position] += usage[name]
        self.servers += map(_ran, usage["server_usages"])

    @property
    def now(self) -> int:
        """How many of its servers are there."""
        return sum(one.ended is None for one in self.servers)


@dataclass(frozen=True)
class Found:
    """The usage that the API reports for a window."""

    projects: Sequence[Used]
    is_cut: bool
    """Whether the usage is incomplete, as only a limited number of pages is read."""

    @property
    def servers(self) -> Iterator[Ran]:
        """Those of all projects."""
        return itertools.chain.from_iterable(one.servers for one in self.projects)

    def hours(self, position: int) -> float:
        """Return a measure's hours of all projects."""
        return sum(one.hours[position] for one in self.projects)


@dataclass(frozen=True)
class Chart:
    """One measure over time."""

    measure: Measure
    now: str
    average: str
    most: str
    hours: str
    drawn: charts.Chart
    """Of each step the most at once."""


def show(visit: Visit) -> Answer:
    """Show what a project used; to administrators also any other project, or all."""
    every = visit.operates and bool(visit.query.get("all_tenants"))
    asked = visit.query.get("project", "").strip()[:255] if visit.operates and not every else ""
    period = visit.query.get("period", "")
    period = period if period in PERIODS else next(iter(PERIODS))
    window = PERIODS[period].until(clock.utcnow().timestamp())
    project = "" if every else asked or visit.project_id
    found = _of_project(visit, window, project) if project else _of_all(visit, window)
    biggest = heapq.nsmallest(BIGGEST, found.projects, key=_by_vcpu_hours) if every else []
    over_time = series(found.servers, window)
    return view(
        "usage.html",
        every=every,
        project=project,
        is_own=project == visit.project_id,
        names=_names(visit, [one.project_id for one in biggest] if every else [project]),
        period=period,
        periods=PERIODS,
        window=window,
        charts=list(_charts(found, over_time)),
        box=(charts.WIDTH, charts.HEIGHT),
        stretches=list(_stretches(over_time)),
        measures=MEASURES,
        biggest=biggest,
        others=len(found.projects) - len(biggest),
        count=sum(len(one.servers) for one in found.projects),
        is_cut=found.is_cut,
    )


def _of_project(visit: Visit, window: Window, project_id: str) -> Found:
    call = Call(COMPUTE, f"{_PATH}/{segment(project_id)}", _query(window))
    return read(visit.cloud, call, _ONE)


def _of_all(visit: Visit, window: Window) -> Found:
    return read(visit.cloud, Call(COMPUTE, _PATH, {**_query(window), "detailed": 1}), _ALL)


def _query(window: Window) -> dict[str, Any]:
    return {"start": _moment(window.begin), "end": _moment(window.end), "limit": _ROWS}


def read(cloud: Cloud, call: Call, key: str) -> Found:
    """Read the pages of an answer, up to `MOST_PAGES`."""
    found: dict[str, Used] = {}
    marker = ""
    for _ in range(MOST_PAGES):
        query = {**call.query, "marker": marker}
        answer = cloud.send(dataclasses.replace(call, query=query))
        usages = answer[key] if key == _ALL else filter(None, [answer[key]])
        for usage in usages:
            found.setdefault(usage["tenant_id"], Used(usage["tenant_id"])).add(usage)
        marker = following(answer, key)
        if not marker:
            break
    return Found(list(found.values()), is_cut=bool(marker))


def _ran(usage: Mapping[str, Any]) -> Ran:
    began, ended = (_seconds(usage[name]) for name in ("started_at", "ended_at"))
    return Ran(began or 0.0, ended, Amounts(1, usage["vcpus"], usage["memory_mb"]))


def _seconds(text: Any) -> float | None:
    at = parse_time(text)
    return at.timestamp() if at else None


def _decimal(number: float, digits: int) -> str:
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text


def _moment(seconds: float) -> str | None:
    return clock.iso_microseconds(datetime.datetime.fromtimestamp(seconds, datetime.UTC))


def _by_vcpu_hours(one: Used) -> tuple[float, str]:
    return -one.hours[_VCPUS], one.project_id


def _charts(found: Found, over_time: Series) -> Iterator[Chart]:
    peak, hours = over_time.peak, over_time.window.hours
    for position, measure in enumerate(MEASURES):
        spent = found.hours(position)
        yield Chart(
            measure,
            now=measure.text(over_time.at_end[position]),
            average=measure.rough(spent / hours),
            most=measure.text(peak[position]),
            hours=measure.rough(spent),
            drawn=_drawn(measure, [one[position] for one in over_time.most], over_time.window),
        )


def _drawn(measure: Measure, most: Sequence[int], window: Window) -> charts.Chart:
    """Return the chart of the most at once of each step."""
    ends = [min(begin + window.step_seconds, window.end) for begin in window.steps]
    values = [float(one * measure.one_is) for one in most]
    name = measure.title
    drawing = charts.Drawing(name, ((name, "in use at most"),), steps=True)
    known = {name: charts.Series(name, measure.drawn_in, name, values)}
    [found] = charts.charts([drawing], known, [_moment(one) or "" for one in ends])
    return found


def _stretches(over_time: Series) -> Iterator[tuple[str | None, str | None, list[str]]]:
    """Yield (since, until, amounts as text)."""
    for since, until, most in over_time.stretches():
        texts = [measure.text(one) for measure, one in zip(MEASURES, most, strict=True)]
        yield _moment(since), _moment(until), texts


def _names(visit: Visit, project_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the names of a few projects; a project that is gone has its ID."""
    known = dict(visit.session.projects)
    unknown = [one for one in project_ids if one not in known]
    calls = [Call(IDENTITY, f"/projects/{segment(one)}", optional=True) for one in unknown]
    answers = visit.cloud.together(*calls) if calls else []
    asked = {
        one: str(answer["project"]["name"]) if answer else one
        for one, answer in zip(unknown, answers, strict=True)
    }
    return known | asked


PAGES = (Page("/usage", show, calls=MOST_PAGES + BIGGEST),)
