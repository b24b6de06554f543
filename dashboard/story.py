"""An explanation as pages show it: operations with their waterfalls, decisions and faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from common import clock
from common.resources.states import OPEN_STATES
from common.story.decision import changes_that_would_do, how_many, retries
from common.story.explanation import forgotten, other_faults
from common.story.matrix import Matrix, matrix
from common.story.text import one_line, seconds_between
from common.story.timeline import Mark, beginning, marks, states_of, tasks_and_facts

Facts = Mapping[str, Any]
#: width of a waterfall, in its own units
WIDTH = 1000
_THINNEST = 4


@dataclass(frozen=True)
class Bar:
    """A row of the waterfall: a step, or a change of the server's state."""

    name: str
    """Of the step; of a change both states."""
    is_change: bool
    new_attempt: int
    """The number of the attempt that begins with it; 0: none does."""
    offset: float
    took: float | None
    left: float
    width: float
    result: str
    host: str
    details: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Decided:
    """A decision of the scheduler; its owner sees no hosts."""

    attempt: int
    host: str
    how_many: str
    reason: str
    would_do: tuple[str, ...]
    alternates: tuple[str, ...]
    claims: tuple[str, ...]
    refused_by: tuple[tuple[str, int], ...]
    """Filters, with the number of hosts; 0: it isn't shown."""
    matrix: Matrix


@dataclass(frozen=True)
class ShownOperation:
    """One operation."""

    facts: Facts
    began: str | None
    took: float | None
    is_open: bool
    forgotten: str | None
    bars: tuple[Bar, ...]
    decisions: tuple[Decided, ...]
    faults: tuple[Facts, ...]

    @property
    def has_hosts(self) -> bool:
        """Whether a step names its host, which is only shown to administrators."""
        return any(one.host for one in self.bars)


def operations_of(explanation: Facts) -> list[ShownOperation]:
    """Return the operations of an explanation, the newest first."""
    return [_shown(one) for one in reversed(explanation.get("operations") or ())]


def _shown(operation: Facts) -> ShownOperation:
    began = beginning(operation)
    is_open = operation.get("state") in OPEN_STATES
    end = clock.utcnow().isoformat() if is_open else operation.get("finished_at")
    return ShownOperation(
        operation,
        began,
        seconds_between(began, end),
        is_open,
        forgotten(operation),
        tuple(_bars(operation, end)),
        tuple(map(decided, operation.get("decisions") or ())),
        tuple(other_faults(operation)),
    )


def _bars(operation: Facts, end: str | None) -> Iterator[Bar]:
    attempt = 1
    for mark in marks(operation, end):
        begins = mark.attempt if mark.attempt > attempt else 0
        attempt = max(attempt, mark.attempt)
        yield _bar(mark, begins)


def _bar(mark: Mark, new_attempt: int) -> Bar:
    left = min(WIDTH - _THINNEST, WIDTH * mark.left)
    facts, name, result = mark.facts, " → ".join(states_of(mark.facts)), ""
    if not mark.is_change:
        name, result = str(facts.get("name") or "step"), mark.result
    return Bar(
        name,
        mark.is_change,
        new_attempt,
        mark.offset,
        mark.took,
        round(left, 1),
        round(max(_THINNEST, min(WIDTH - left, WIDTH * mark.width)), 1),
        result,
        one_line(facts.get("host") or ""),
        () if mark.is_change else _details(facts),
    )


def _details(event: Facts) -> tuple[tuple[str, str], ...]:
    """Return a step's tasks and facts."""
    upids, facts = tasks_and_facts(event)
    return (*(("task", upid) for upid in upids), *facts)


def decided(decision: Facts) -> Decided:
    """Return a decision as pages show it."""
    host = decision.get("host") or ("a host" if decision.get("placed") else "")
    return Decided(
        int(decision.get("attempt") or 1),
        one_line(host),
        how_many(decision),
        one_line(decision.get("reason") or ""),
        tuple(changes_that_would_do(decision)),
        tuple(one_line(one.get("host")) for one in decision.get("alternates") or ()),
        tuple(
            f"{one_line(one.get('host'))}: {one_line(one.get('result'))}{retries(one)}"
            for one in decision.get("claims") or ()
        ),
        tuple(_refused_by(decision)),
        matrix(decision),
    )


def _refused_by(decision: Facts) -> Iterator[tuple[str, int]]:
    for name, refused in (decision.get("counts") or decision.get("refused") or {}).items():
        yield name, refused if isinstance(refused, int) else len(refused)
    yield from ((name, 0) for name in decision.get("refused_by") or ())
