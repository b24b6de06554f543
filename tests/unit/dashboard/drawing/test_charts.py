"""How measurements are drawn."""

from __future__ import annotations

from typing import Any

import pytest

from common.story.text import parse_time
from dashboard.drawing import charts
from dashboard.drawing.charts import (
    BANDS,
    HEIGHT,
    WIDTH,
    Drawing,
    ceiling,
    groups,
    paths,
    steps,
    ticks,
)

HOUR = [f"2026-11-29T00:{minute:02d}:00Z" for minute in range(60)]


def answer(**series: tuple[str, list[float | None]]) -> dict[str, charts.Series]:
    return charts.series(
        {
            "series": [
                {"name": name, "unit": unit, "description": f"All {name}", "values": values}
                for name, (unit, values) in series.items()
            ]
        }
    )


def test_a_line_spans_the_box_from_its_bottom_to_its_top() -> None:
    assert list(paths([0, 5, 10], 10)) == [f"M0.0 {HEIGHT}.0L300.0 75.0L{WIDTH}.0 0.0"]


def test_gaps_are_left_open_and_single_values_seen() -> None:
    drawn = list(paths([None, 1, None, 2, 2], 4))
    assert drawn == ["M150.0 112.5h75.0", "M450.0 75.0L600.0 75.0"]
    assert list(paths([], 1)) == []
    assert list(paths([None], 1)) == []


def test_steps_hold_for_their_interval_and_leave_gaps_open() -> None:
    assert list(steps([1, 1, None, 2, 0], 2)) == [
        "M0.0 75.0H240.0",
        "M360.0 0.0H480.0V150.0H600.0",
    ]
    assert list(steps([], 1)) == []


def test_a_band_of_steps_says_the_most() -> None:
    times = [f"2026-11-{1 + hour // 24:02d}T{hour % 24:02d}:00:00Z" for hour in range(2 * BANDS)]
    values: list[float | None] = [1.0, 3.0] * BANDS
    known = answer(servers=("count", values))
    for most, said in ((True, "in use 3"), (False, "in use 2")):
        [found] = charts.charts(
            [Drawing("Servers", (("servers", "in use"),), steps=most)], known, times
        )
        assert {band.said for band in found.bands} == {said}
        assert found.scale == (["6", "3", "0"] if most else ["5", "2.5", "0"])


@pytest.mark.parametrize(
    ("value", "unit", "top"),
    [
        (0, "percent", 1),
        (0.3, "percent", 0.5),
        (61, "percent", 100),
        (180, "percent", 200),
        (0, "bytes", 1024),
        (5 << 20, "bytes_per_second", 6 << 20),
        (7 << 20, "bytes_per_second", 8 << 20),
        (4 << 30, "bytes", 4 << 30),
        (3, "count", 5),
        (2.1, "processes", 2.5),
    ],
)
def test_an_axis_ends_at_a_round_number(value: float, unit: str, top: float) -> None:
    assert ceiling(value, unit) == pytest.approx(top)


@pytest.mark.parametrize("count", [0, 1, 47, 48, 49, 180])
def test_bands_have_each_value_once(count: int) -> None:
    found = [position for group in groups(count) for position in group]
    assert found == list(range(count))
    assert len(groups(count)) <= BANDS


def test_a_chart_says_its_values() -> None:
    known = answer(
        used=("bytes", [1 << 30] * 60),
        whole=("bytes", [4 << 30] * 60),
        other=("bytes", [None] * 60),
    )
    drawings = (
        Drawing("Memory", (("used", "in use"),), limit="whole"),
        Drawing("Other", (("other", "x"), ("absent", "y"))),
    )
    [chart] = charts.charts(drawings, known, HOUR)
    assert (chart.title, chart.limit, chart.limit_y) == ("Memory", "4.0 GiB", 0)
    assert chart.scale == ["4.0 GiB", "2.0 GiB", "0 B"]
    assert [one.text for one in chart.times] == ["00:00", "00:14", "00:29", "00:44", "00:59"]
    assert not any(one.is_day for one in chart.times)
    [line] = chart.lines
    assert (line.title, line.now, line.most) == ("in use", "1.0 GiB", "1.0 GiB")
    assert chart.said == "in use 1.0 GiB on average, 1.0 GiB at most; the limit is 4.0 GiB"
    assert len(chart.bands) == BANDS
    assert parse_time(chart.bands[0].until) == parse_time("2026-11-29T00:00:00Z")
    assert chart.bands[0].said == "in use 1.0 GiB"
    assert chart.bands[-1].x + chart.bands[-1].width == pytest.approx(WIDTH)


@pytest.mark.parametrize(
    ("used", "whole", "scale", "limit_y"),
    [
        (9 << 30, 80 << 40, ["12.0 GiB", "6.0 GiB", "0 B"], None),
        (21 << 40, 80 << 40, ["96.0 TiB", "48.0 TiB", "0 B"], pytest.approx(25)),
        (90 << 40, 80 << 40, ["96.0 TiB", "48.0 TiB", "0 B"], pytest.approx(25)),
        (0, 80 << 40, ["1.0 KiB", "512 B", "0 B"], None),
    ],
)
def test_little_use_of_much_fills_its_chart(
    used: float, whole: float, scale: list[str], limit_y: Any
) -> None:
    known = answer(used=("bytes", [used]), total=("bytes", [whole]))
    [chart] = charts.charts(charts.OF_STORAGE, known, HOUR[:1])
    assert (chart.scale, chart.limit_y) == (scale, limit_y)
    assert chart.limit == "80.0 TiB"


def test_the_table_has_the_newest_first() -> None:
    known = answer(cpu=("percent", [float(one) for one in range(60)]))
    rows = list(charts.table(known, HOUR))
    assert len(rows) == BANDS
    assert rows[0] == (HOUR[-1], [("All cpu", "58.5 %")])
    assert list(charts.table({}, [])) == []


def test_long_periods_are_labelled_by_days() -> None:
    days = [f"2026-11-{day:02d}T00:00:00Z" for day in range(1, 30)]
    texts = [one.text for one in ticks(days)]
    assert texts == ["01 Nov", "08 Nov", "15 Nov", "22 Nov", "29 Nov"]
    assert all(one.is_day for one in ticks(days))
    assert ticks([]) == []


@pytest.mark.parametrize("drawings", [charts.OF_SERVER, charts.OF_HOST, charts.OF_STORAGE])
def test_every_chart_is_of_metrics_that_there_are(drawings: Any) -> None:
    from common.messages import measurements

    names = {*measurements.OF_SERVER, *measurements.OF_HOST, *measurements.OF_STORAGE}
    drawn = {name for one in drawings for name, _ in one.metrics}
    tops = {one.limit for one in drawings if one.limit}
    assert drawn | tops <= names
