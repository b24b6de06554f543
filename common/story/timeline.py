"""An operation's steps and changes of state in time: what waterfalls draw, wherever they do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from common.story.text import facts_of, one_line, parse_time, seconds_between

Facts: TypeAlias = Mapping[str, Any]

#: seconds of an operation that took no time, so that shares of it exist
_SHORTEST = 0.001


@dataclass(frozen=True)
class Mark:
    """A step, or a change of the server's state."""

    facts: Facts
    """The event or the transition."""
    is_change: bool
    attempt: int
    offset: float
    """Seconds since the operation began."""
    took: float | None
    """Seconds; None: it isn't over."""
    left: float
    """Where its bar begins, 0 to 1 of the operation's time."""
    width: float
    """What its bar takes of that; 0 for a change."""

    @property
    def result(self) -> str:
        """How a step ended: ``Success``, ``Error``, or ``running``."""
        return result_of(self.facts, self.took)


def beginning(operation: Facts) -> str | None:
    """Return when the operation began, ISO 8601: when its request came, where that is known."""
    times = [operation.get("started_at")]
    times += [event.get("started_at") for event in operation.get("events") or ()]
    known = [str(time) for time in times if parse_time(time)]
    return min(known, key=moment, default=None)


def length(operation: Facts, until: str | None = None) -> float:
    """Return the operation's duration in seconds; if unfinished, up to the last known event.

    ``until`` (ISO 8601) is known to be later, such as now.
    """
    began = beginning(operation)
    ends = [operation.get("finished_at"), until]
    for event in operation.get("events") or ():
        ends += [event.get("started_at"), event.get("finished_at")]
    ends += [change.get("at") for change in operation.get("transitions") or ()]
    return max((seconds_between(began, end) or 0.0 for end in ends), default=0.0)


def marks(operation: Facts, until: str | None = None) -> list[Mark]:
    """Return steps and changes in order of time; a change comes before what began with it.

    A step that isn't over lasts to the end, which is ``until`` where that is later.
    """
    total = max(length(operation, until), _SHORTEST)
    return sorted(_marks(operation, total), key=lambda mark: (mark.offset, not mark.is_change))


def _marks(operation: Facts, total: float) -> Iterator[Mark]:
    began = beginning(operation)
    for change in operation.get("transitions") or ():
        offset = max(0.0, seconds_between(began, change.get("at")) or 0.0)
        attempt = int(change.get("attempt") or 1)
        yield Mark(change, True, attempt, offset, 0.0, offset / total, 0.0)
    for event in operation.get("events") or ():
        offset = max(0.0, seconds_between(began, event.get("started_at")) or 0.0)
        took = seconds_between(event.get("started_at"), event.get("finished_at"))
        seconds = total - offset if took is None else took
        left = min(1.0, offset / total)
        width = max(0.0, min(1.0 - left, seconds / total))
        yield Mark(event, False, int(event.get("attempt") or 1), offset, took, left, width)


def result_of(event: Facts, took: float | None) -> str:
    """Return how a step ended; ``running``: it didn't yet."""
    return one_line(event.get("result") or ("running" if took is None else ""))


def tasks_and_facts(event: Facts) -> tuple[list[str], list[tuple[str, str]]]:
    """Return a step's Proxmox VE tasks (UPIDs), and its other facts by name."""
    detail = dict(event.get("detail") or {})
    upids = detail.pop("upids", None) or [event.get("upid")]
    return [one_line(upid) for upid in upids if upid], facts_of(detail)


def states_of(change: Facts) -> tuple[str, str]:
    """Return a change's old and new state, in words.

    >>> states_of({"from": {"vm_state": "building", "task_state": "spawning"}})
    ('building (spawning)', '?')
    """
    return _state(change.get("from") or {}), _state(change.get("to") or {})


def _state(state: Facts) -> str:
    task = state.get("task_state")
    return one_line(f"{state.get('vm_state') or '?'}{f' ({task})' if task else ''}")


def moment(text: Any) -> float:
    """Return a time (ISO 8601) as seconds since the epoch; 0: there is none."""
    time = parse_time(text)
    return time.timestamp() if time else 0.0
