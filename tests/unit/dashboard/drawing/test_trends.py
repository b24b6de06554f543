"""Sums of what several nodes recorded."""

from __future__ import annotations

from typing import Any

from dashboard.drawing import charts, trends

NAMES = ("used", "total")


def answer(
    times: list[int], used: list[float | None], total: list[float | None], step: int = 100
) -> dict[str, Any]:
    """Return what an API shows of a storage; times in seconds since 1970."""
    return {
        "resolution_seconds": step,
        "times": [trends._moment(one) for one in times],
        "series": [
            {"name": "used", "unit": "bytes", "description": "Used", "values": used},
            {"name": "total", "unit": "bytes", "description": "Size", "values": total},
        ],
    }


def values(*answers: dict[str, Any]) -> tuple[list[Any], list[Any], int]:
    """Return both sums, and the number of times."""
    found, times = trends.summed(answers, NAMES)
    return list(found["used"].values), list(found["total"].values), len(times)


def test_intervals_are_summed_up() -> None:
    one = answer([100, 200, 300], [1, 2, 3], [10, 10, 10])
    # the newest interval of one node ends earlier than that of another
    other = answer([100, 200, 290], [5, 5, 6], [20, 20, 20])
    assert values(one, other) == ([6, 7, 9], [30, 30, 30], 3)


def test_the_newest_interval_ends_when_it_was_measured() -> None:
    _, times = trends.summed([answer([100, 200, 250], [1, 2, 3], [9, 9, 9])], NAMES)
    assert times == [trends._moment(one) for one in (100, 200, 250)]


def test_what_was_added_later_counts_from_then_on() -> None:
    one = answer([100, 200, 300], [1, None, 3], [10, 10, 10])
    added = answer([300], [5], [20])
    # of the second interval nothing is known
    assert values(one, added) == ([1, None, 8], [10, None, 30], 3)


def test_nodes_of_several_releases_have_one_resolution() -> None:
    fine = answer([100, 200, 300, 400], [1, 3, 5, 7], [10, 10, 10, 10])
    coarse = answer([200, 400], [1, 1], [5, 5], step=200)
    assert values(fine, coarse) == ([3, 7], [15, 15], 2)


def test_nothing_and_what_lacks_a_metric() -> None:
    assert trends.summed([], NAMES) == ({}, [])
    lacks = {**answer([100], [1], [2]), "series": []}
    assert trends.summed([lacks], NAMES) == ({}, [])
    assert trends.summed([answer([100], [None], [2])], NAMES) == ({}, [])
    known, times = trends.summed([answer([100, 200], [1, 2], [3, 3])], NAMES)
    [chart] = charts.charts([charts.Drawing("x", (("used", "in use"),), "total")], known, times)
    assert chart.limit == "3 B"


def test_a_sum_can_be_added_to() -> None:
    several = [
        answer([100, 200, 250], [1, 2, 3], [9, 9, 9]),
        answer([200, 300], [5, None], [7, 7]),
        answer([150, 200], [10, 20], [30, 30], step=50),
        answer([], [], []),
    ]
    whole = trends.summed(several, NAMES)
    step_by_step = trends.NOTHING
    for one in several:
        step_by_step = trends.merged([step_by_step, one], NAMES)
    assert trends.summed([step_by_step], NAMES) == whole
