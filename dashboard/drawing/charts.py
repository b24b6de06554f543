"""Charts of measurements, as lines, labels and bands for a template to draw as SVG. Pure.

The plot's box is stretched to its place: what is text is beside it, not in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from common.story.amounts import amount, last, mean, peak
from common.story.text import parse_time

Values = Sequence[float | None]

#: the box of a plot
WIDTH, HEIGHT = 600, 150
#: parts of a period that say their values when pointed at, and are rows of the table
BANDS = 48
_TICKS = 5
_STEPS = (1, 2, 2.5, 5, 10)
#: sizes have these times a power of two
_HALVES = (1, 1.5, 2)
#: an axis reaches up to a limit that is at most so many times the highest value
_WITHIN = 4
#: a part of an axis without such a limit that is above the highest value
_HEADROOM = 0.1
_KIB = 1024.0


@dataclass(frozen=True)
class Series:
    """One metric of an answer."""

    name: str
    unit: str
    text: str
    values: Values


@dataclass(frozen=True)
class Drawing:
    """A chart to be made: the metrics that share its axes."""

    title: str
    metrics: Sequence[tuple[str, str]]
    """Name, and what it is called here."""
    limit: str = ""
    """The metric that the others can't exceed."""
    steps: bool = False
    """Whether a value is the most of its interval, and holds for all of it."""


@dataclass(frozen=True)
class Line:
    """One metric in a chart."""

    title: str
    number: int
    """Its place, which gives it its colour and its dashes."""
    paths: Sequence[str]
    """An SVG path for each stretch without a gap."""
    now: str
    average: str
    most: str


@dataclass(frozen=True)
class Band:
    """A part of the period."""

    x: float
    width: float
    until: str
    """When it ends."""
    said: str
    """Its values."""


@dataclass(frozen=True)
class Tick:
    """A label of the horizontal axis."""

    at: str
    text: str
    """In UTC."""
    is_day: bool


@dataclass(frozen=True)
class Chart:
    """Metrics over a period, on common axes."""

    title: str
    lines: Sequence[Line]
    bands: Sequence[Band]
    limit: str
    """What the limit is, if there is one."""
    limit_y: float | None
    """How far below the top it is drawn; None: it is beyond the axis, or there is none."""
    scale: Sequence[str]
    """Labels of the vertical axis from its top to its bottom."""
    times: Sequence[Tick]
    """Labels of the horizontal axis."""

    @property
    def said(self) -> str:
        """What the chart shows, in a sentence."""
        found = [f"{one.title} {one.average} on average, {one.most} at most" for one in self.lines]
        if self.limit:
            found.append(f"the limit is {self.limit}")
        return "; ".join(found)


OF_SERVER = (
    Drawing("Processors", (("cpu", "in use"),)),
    Drawing("Memory", (("memory_used", "in use"),), limit="memory"),
    Drawing("Network", (("network_in", "received"), ("network_out", "sent"))),
    Drawing("Disks", (("disk_read", "read"), ("disk_written", "written"))),
    Drawing(
        "Waiting",
        (
            ("cpu_pressure", "for processors"),
            ("memory_pressure", "for memory"),
            ("disk_pressure", "for disks"),
        ),
    ),
)
OF_HOST = (
    Drawing("Processors", (("cpu", "in use"), ("io_wait", "waiting for disks"))),
    Drawing("Load", (("load", "processes"),)),
    Drawing("Memory", (("memory_used", "in use"),), limit="memory"),
    Drawing("Network", (("network_in", "received"), ("network_out", "sent"))),
    Drawing("Root file system", (("root_used", "in use"),), limit="root"),
    OF_SERVER[-1],
)
OF_STORAGE = (Drawing("Storage", (("used", "in use"),), limit="total"),)


def series(answer: Mapping[str, object]) -> dict[str, Series]:
    """Return the metrics of an API's answer by name."""
    found: Iterable[Mapping[str, object]] = answer["series"]  # type: ignore[assignment]
    return {
        str(one["name"]): Series(
            str(one["name"]),
            str(one["unit"]),
            str(one["description"]),
            one["values"],  # type: ignore[arg-type]
        )
        for one in found
    }


def charts(
    drawings: Iterable[Drawing], known: Mapping[str, Series], times: Sequence[str]
) -> Iterator[Chart]:
    """Yield the charts that have a known value."""
    for one in drawings:
        shown = [(known[name], title) for name, title in one.metrics if name in known]
        if any(peak(found.values) is not None for found, _ in shown):
            yield _chart(one, shown, known.get(one.limit), times)


def _chart(
    drawing: Drawing,
    shown: Sequence[tuple[Series, str]],
    limit: Series | None,
    times: Sequence[str],
) -> Chart:
    unit = shown[0][0].unit
    highest = max(peak(found.values) or 0.0 for found, _ in shown)
    whole = last(limit.values) if limit else None
    top = axis_top(highest, whole, unit)
    if drawing.steps and unit == "count":
        # things are whole in the middle of the axis, too
        top += top % 2
    return Chart(
        drawing.title,
        [
            _line(found, title, number, top, steps if drawing.steps else paths)
            for number, (found, title) in enumerate(shown)
        ],
        list(_bands(shown, times, peak if drawing.steps else mean)),
        amount(whole, unit) if whole is not None else "",
        _height(whole, top) if whole is not None and whole <= top else None,
        [amount(top, unit), amount(top / 2, unit), amount(0, unit)],
        ticks(times),
    )


def _line(
    found: Series,
    title: str,
    number: int,
    top: float,
    draw: Callable[[Values, float], Iterable[str]],
) -> Line:
    values, unit = found.values, found.unit
    stated = (amount(of(values), unit) for of in (last, mean, peak))
    return Line(title, number, list(draw(values, top)), *stated)


def paths(values: Values, top: float) -> Iterator[str]:
    """Yield an SVG path for each stretch of known values; a single one is a short line."""
    step = WIDTH / max(1, len(values) - 1)
    stretch: list[str] = []
    for position, value in enumerate([*values, None]):
        if value is not None:
            stretch.append(f"{position * step:.1f} {_height(value, top):.1f}")
        elif stretch:
            yield f"M{'L'.join(stretch)}" if len(stretch) > 1 else f"M{stretch[0]}h{step / 2:.1f}"
            stretch = []


def steps(values: Values, top: float) -> Iterator[str]:
    """Yield an SVG path for each stretch of known values; each holds for its interval.

    >>> list(steps([0, 1], 1))
    ['M0.0 150.0H300.0V0.0H600.0']
    """
    width = WIDTH / max(1, len(values))
    path, held = "", None
    for position, value in enumerate([*values, None]):
        if value is None:
            if path:
                yield f"{path}H{position * width:.1f}"
            path = ""
        elif value != held or not path:
            height = f"{_height(value, top):.1f}"
            at = f"{position * width:.1f}"
            path = f"{path}H{at}V{height}" if path else f"M{at} {height}"
        held = value


def _height(value: float, top: float) -> float:
    """Return how far below the top of the box a value is drawn."""
    return HEIGHT - HEIGHT * min(value, top) / top


def groups(count: int) -> list[range]:
    """Return the positions of each band of so many values.

    >>> groups(3)
    [range(0, 1), range(1, 2), range(2, 3)]
    """
    number = min(BANDS, count)
    return [range(one * count // number, (one + 1) * count // number) for one in range(number)]


def _bands(
    shown: Sequence[tuple[Series, str]],
    times: Sequence[str],
    of: Callable[[Values], float | None],
) -> Iterator[Band]:
    step = WIDTH / max(1, len(times))
    for group in groups(len(times)):
        said = [
            f"{title} {amount(of(found.values[group.start : group.stop]), found.unit)}"
            for found, title in shown
        ]
        x, width = round(group.start * step, 1), round(len(group) * step, 1)
        yield Band(x, width, times[group.stop - 1], ", ".join(said))


def table(
    known: Mapping[str, Series], times: Sequence[str]
) -> Iterator[tuple[str, Sequence[tuple[str, str]]]]:
    """Yield the newest first: the end of a part of the period, and (metric, mean) in it."""
    for group in reversed(groups(len(times))):
        cells = [
            (one.text, amount(mean(one.values[group.start : group.stop]), one.unit))
            for one in known.values()
        ]
        yield times[group.stop - 1], cells


def axis_top(highest: float, limit: float | None, unit: str) -> float:
    """Return where an axis ends: at a limit that is near; else somewhat above the highest value.

    >>> axis_top(30, 100, "count"), axis_top(3, 100, "count"), axis_top(3, None, "count")
    (100.0, 5.0, 5.0)
    """
    if limit is None:
        return ceiling(highest, unit)
    is_near = limit <= highest * _WITHIN
    return ceiling(max(highest, limit) if is_near else highest * (1 + _HEADROOM), unit)


def ceiling(value: float, unit: str) -> float:
    """Return a round number from a value up: the top of an axis.

    >>> ceiling(37, "percent"), ceiling(5 << 30, "bytes") == 6 << 30, ceiling(0, "count")
    (50.0, True, 1.0)
    """
    if unit in ("bytes", "bytes_per_second"):
        return _stepped(value, 2.0 ** math.floor(math.log2(value)), _HALVES) if value > 1 else _KIB
    if value <= 0:
        return 1.0
    found = _stepped(value, 10.0 ** math.floor(math.log10(value)), _STEPS)
    return min(found, 100.0) if unit == "percent" and value <= 100 else found


def _stepped(value: float, power: float, among: Sequence[float]) -> float:
    return next(step for step in among if step * power >= value * (1 - 1e-9)) * power


def ticks(times: Sequence[str]) -> list[Tick]:
    """Return labels at equal distances: times of a day, days of longer periods."""
    if not times:
        return []
    last_one = len(times) - 1
    chosen = [times[one * last_one // (_TICKS - 1)] for one in range(_TICKS)]
    first, final = parse_time(times[0]), parse_time(times[-1])
    is_long = bool(first and final and (final - first).total_seconds() > 2 * 86_400)
    return [Tick(one, _written(one, is_long), is_long) for one in chosen]


def _written(text: str, is_day: bool) -> str:
    at = parse_time(text)
    if at is None:
        return ""
    return f"{at:%d %b}" if is_day else f"{at:%H:%M}"
