"""An explanation as pages show it: operations with their waterfalls, decisions and faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from common import clock
from common.states import OPEN_STATES
from common.story.decision import changes_that_would_do, how_many
from common.story.explanation import beginning, forgotten, other_faults
from common.story.matrix import Matrix, matrix
from common.story.text import facts_of, one_line, seconds_between

Facts = Mapping[str, Any]
#: width of a waterfall, in its own units
WIDTH = 1000
_THINNEST = 4


@dataclass(frozen=True)
class Bar:
    """A row of the waterfall: a step, or a change of the server's state."""

    name: str
    offset: float
    took: float | None
    left: float
    width: float
    result: str
    host: str
    details: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Decided:
    """A decision of the scheduler."""

    host: str
    how_many: str
    reason: str
    would_do: tuple[str, ...]
    matrix: Matrix


@dataclass(frozen=True)
class Told:
    """One operation."""

    facts: Facts
    began: str | None
    took: float | None
    is_open: bool
    forgotten: str | None
    bars: tuple[Bar, ...]
    decisions: tuple[Decided, ...]
    faults: tuple[Facts, ...]


def operations_of(explanation: Facts) -> list[Told]:
    """Return the operations of an explanation, the newest first."""
    return [_told(one) for one in reversed(explanation.get("operations") or ())]


def _told(operation: Facts) -> Told:
    began = beginning(operation)
    is_open = operation.get("state") in OPEN_STATES
    end = clock.utcnow().isoformat() if is_open else operation.get("finished_at")
    return Told(
        operation,
        began,
        seconds_between(began, end),
        is_open,
        forgotten(operation),
        tuple(_bars(operation, began, end)),
        tuple(map(_decided, operation.get("decisions") or ())),
        tuple(other_faults(operation)),
    )


def _bars(operation: Facts, began: str | None, end: str | None) -> Iterator[Bar]:
    events = sorted(operation.get("events") or (), key=lambda one: str(one.get("started_at")))
    ends = [end, *(one.get("finished_at") or one.get("started_at") for one in events)]
    total = max([*(seconds_between(began, at) or 0.0 for at in ends), 0.001])
    for event in events:
        offset = max(0.0, seconds_between(began, event.get("started_at")) or 0.0)
        took = seconds_between(event.get("started_at"), event.get("finished_at"))
        left = min(WIDTH - _THINNEST, WIDTH * offset / total)
        length = total - offset if took is None else took
        yield Bar(
            str(event.get("name") or "step"),
            offset,
            took,
            round(left, 1),
            round(max(_THINNEST, min(WIDTH - left, WIDTH * length / total)), 1),
            one_line(event.get("result") or ("running" if took is None else "")),
            one_line(event.get("host") or ""),
            tuple(_details(event)),
        )


def _details(event: Facts) -> Iterator[tuple[str, str]]:
    """Return a step's tasks and facts."""
    detail = dict(event.get("detail") or {})
    upids = detail.pop("upids", None) or [event.get("upid")]
    yield from (("task", one_line(upid)) for upid in upids if upid)
    yield from facts_of(detail)


def _decided(decision: Facts) -> Decided:
    host = decision.get("host") or ("a host" if decision.get("placed") else "")
    return Decided(
        one_line(host),
        how_many(decision),
        one_line(decision.get("reason") or ""),
        tuple(changes_that_would_do(decision)),
        matrix(decision),
    )
