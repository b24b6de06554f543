"""Measurements of several nodes or storages as one sum over time. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from common.story.text import parse_time
from dashboard.drawing.charts import Series


def summed(
    answers: Iterable[Mapping[str, Any]], names: Sequence[str]
) -> tuple[dict[str, Series], list[str]]:
    """Return the sums of these metrics by name, and the times.

    An interval's sum is that of the answers that have all of the metrics there: what was added
    later counts from then on, and a use without its total never does.
    """
    given = list(answers)
    step = max((int(one["resolution_seconds"]) for one in given), default=0)
    if not step:
        return {}, []
    newest = max((at.timestamp() for one in given if (at := _last(one))), default=0.0)
    sums: dict[int, dict[str, float]] = {}
    texts: dict[str, tuple[str, str]] = {}
    for answer in given:
        columns = {one["name"]: one for one in answer["series"]}
        if not all(name in columns for name in names):
            continue
        texts |= {name: (columns[name]["unit"], columns[name]["description"]) for name in names}
        for interval, values in _intervals(answer, [columns[name] for name in names], step):
            here = sums.setdefault(interval, dict.fromkeys(names, 0.0))
            for name, value in zip(names, values, strict=True):
                here[name] += value
    order = range(min(sums), max(sums) + 1) if sums else range(0)
    return {
        name: Series(
            name, *texts[name], [sums[one][name] if one in sums else None for one in order]
        )
        for name in (names if sums else ())
    }, [_moment(min(one * step, newest)) for one in order]


#: the sum of no answer
NOTHING: Mapping[str, Any] = {"resolution_seconds": 0, "times": [], "series": []}


def merged(answers: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Mapping[str, Any]:
    """Return the sum of answers as an answer: one more can be added to it later."""
    known, times = summed(answers, names)
    return {
        "resolution_seconds": max(int(one["resolution_seconds"]) for one in answers),
        "times": times,
        "series": [
            {
                "name": one.name,
                "unit": one.unit,
                "description": one.text,
                "values": list(one.values),
            }
            for one in known.values()
        ],
    }


def _intervals(
    answer: Mapping[str, Any], columns: Sequence[Mapping[str, Any]], step: int
) -> Iterable[tuple[int, Sequence[float]]]:
    """Yield the mean of each interval: (its number, a value for each column), of those known."""
    grouped: dict[int, list[Sequence[float]]] = {}
    for position, text in enumerate(answer["times"]):
        values = [one["values"][position] for one in columns]
        at = parse_time(text)
        if at is not None and None not in values:
            grouped.setdefault(-int(-at.timestamp() // step), []).append(values)
    for interval, rows in grouped.items():
        yield interval, [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def _last(answer: Mapping[str, Any]) -> datetime.datetime | None:
    """Return the end of an answer's newest interval, which may be shorter than others."""
    return parse_time(answer["times"][-1]) if answer["times"] else None


def _moment(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat()
