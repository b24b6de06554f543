"""The story of a request: what happened, where, in what order, and why.

The explanation of the API becomes lines: a head for the server, then for each operation one
timeline of its state changes, steps, decisions and faults, oldest first, with a bar where each
step lies within the operation. What a release doesn't know yet is left out, not an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from cli.render.decision import decision_lines
from cli.render.text import Line, duration, one_line, parse_time, seconds_between

Facts: TypeAlias = Mapping[str, Any]

_BAR_WIDTH = 24
_STATES = {
    "done": "green",
    "failed": "bold red",
    "running": "yellow",
    "queued": "yellow",
    "unwinding": "bold yellow",
}
_RESULTS = {"Success": "green", "Error": "bold red"}
#: room for the time column, so that what belongs to an entry stands under it
_INDENT = " " * 14


@dataclass(frozen=True)
class Entry:
    """Something at a time: its lines, the first of which gets the time in front."""

    at: str
    """ISO 8601; empty: when isn't known."""
    rank: int
    """Order among entries of the same time."""
    lines: tuple[Line, ...]


def explanation_lines(explanation: Facts) -> list[Line]:
    """Return the whole story."""
    lines = list(_server_lines(explanation.get("server") or {}))
    operations = explanation.get("operations") or ()
    if not operations:
        lines.append((("  nothing was done", "dim"),))
    for operation in operations:
        lines.append(())
        lines.extend(operation_lines(operation))
    return lines


def operation_lines(operation: Facts) -> list[Line]:
    """Return one operation: its head, its timeline, how it ended."""
    lines = [_head(operation)]
    started = operation.get("started_at")
    entries = sorted(_entries(operation), key=lambda e: (_moment(e.at or started), e.rank))
    for entry in entries:
        offset = seconds_between(started, entry.at)
        when = f"{'+' + duration(offset):>12}  " if offset is not None else _INDENT
        lines.append(((when, "dim"), *entry.lines[0]))
        lines.extend(((_INDENT, ""), *line) for line in entry.lines[1:])
    if operation.get("message"):
        lines.append(((_INDENT, ""), (one_line(operation["message"]), "bold red")))
    return lines


def bar(start: float, length: float | None, total: float) -> str:
    """Return a bar within a row of fixed width: where a step lies and how long it took.

    >>> bar(0.5, 0.25, 1.0)
    '            ██████      '
    """
    if total <= 0 or length is None:
        return " " * _BAR_WIDTH
    left = min(_BAR_WIDTH - 1, max(0, int(start / total * _BAR_WIDTH)))
    width = min(_BAR_WIDTH - left, max(1, round(length / total * _BAR_WIDTH)))
    return f"{' ' * left}{'█' * width}".ljust(_BAR_WIDTH)


def _server_lines(server: Facts) -> Iterator[Line]:
    name = one_line(server.get("name") or "a server that no record names")
    uuid = server.get("id") or server.get("uuid") or ""
    state = server.get("status") or server.get("vm_state") or ""
    place = " on ".join(str(p) for p in (_vm(server), server.get("host")) if p)
    yield (
        (name, "bold"),
        (f" ({uuid})" if uuid else "", "dim"),
        (f"  {state}" if state else "", "bold"),
        (f"  {one_line(place)}" if place else "", ""),
    )


def _vm(server: Facts) -> str:
    return f"VM {server['vmid']}" if server.get("vmid") else ""


def _head(operation: Facts) -> Line:
    state = str(operation.get("state") or "unknown")
    took = seconds_between(operation.get("started_at"), operation.get("finished_at"))
    attempt = operation.get("attempt")
    return (
        (str(operation.get("action") or "operation"), "bold cyan"),
        (f"  {state}", _STATES.get(state, "yellow")),
        (f" in {duration(took)}" if took is not None else "", ""),
        (f", attempt {attempt}" if attempt and attempt != 1 else "", "yellow"),
        (f"  {operation.get('request_id') or ''}", ""),
        (f"  {operation.get('started_at') or ''}", "dim"),
    )


def _entries(operation: Facts) -> Iterator[Entry]:
    started = operation.get("started_at")
    events = operation.get("events") or ()
    total = _length(operation)
    for change in operation.get("transitions") or ():
        yield Entry(str(change.get("at") or ""), 0, (_transition(change),))
    for event in events:
        offset = seconds_between(started, event.get("started_at")) or 0.0
        yield Entry(str(event.get("started_at") or ""), 1, tuple(_event(event, offset, total)))
    for decision in operation.get("decisions") or ():
        at = decision.get("created_at") or decision.get("at")
        at = at or _decided_at(events, decision.get("attempt")) or started or ""
        yield Entry(str(at), 2, tuple(decision_lines(decision)))
    for fault in operation.get("faults") or ():
        at = fault.get("created_at") or fault.get("at") or operation.get("finished_at") or ""
        yield Entry(str(at), 3, tuple(_fault(fault)))


def _length(operation: Facts) -> float:
    """Return the operation's seconds; of one that still runs, up to the last thing known."""
    started = operation.get("started_at")
    ends = [operation.get("finished_at")]
    for event in operation.get("events") or ():
        ends += [event.get("started_at"), event.get("finished_at")]
    return max((seconds_between(started, end) or 0.0 for end in ends), default=0.0)


def _decided_at(events: Sequence[Facts], attempt: Any) -> Any:
    """Return when the scheduling step of an attempt ended, for a decision without a time."""
    for event in events:
        same = event.get("attempt") in (None, attempt)
        if same and "schedul" in str(event.get("name") or ""):
            return event.get("finished_at") or event.get("started_at")
    return None


def _transition(change: Facts) -> Line:
    return (
        (_state(change, "from"), "dim"),
        (" → ", "dim"),
        (_state(change, "to"), "bold cyan"),
    )


def _state(change: Facts, side: str) -> str:
    vm = change.get(f"{side}_vm_state") or change.get(side) or "?"
    task = change.get(f"{side}_task_state")
    return f"{vm} ({task})" if task else str(vm)


def _event(event: Facts, offset: float, total: float) -> Iterator[Line]:
    took = seconds_between(event.get("started_at"), event.get("finished_at"))
    result = str(event.get("result") or ("running" if took is None else ""))
    yield (
        (f"{one_line(event.get('name') or event.get('event') or 'step'):<32} ", ""),
        (bar(offset, took, total), "cyan" if result != "Error" else "red"),
        (f" {duration(took):>10}", ""),
        (f"  {result}", _RESULTS.get(result, "yellow")),
        (f"  {one_line(event.get('host'))}" if event.get("host") else "", "dim"),
    )
    if event.get("upid"):
        yield (("task ", "dim"), (one_line(event["upid"]), "dim"))
    detail = event.get("detail") or {}
    if detail:
        facts = "  ".join(f"{one_line(k)}={one_line(v)}" for k, v in sorted(detail.items()))
        yield ((facts, "dim"),)


#: fields of a fault that hold several things, and what they are called
_LISTS = (("log_tail", "log"), ("cleaned", "cleaned up"), ("left", "still there"))


def _fault(fault: Facts) -> Iterator[Line]:
    where = f" on {one_line(fault['host'])}" if fault.get("host") else ""
    yield (
        ("fault ", "bold red"),
        (f"{fault.get('category') or fault.get('code') or ''}{where}: ", "bold"),
        (one_line(fault.get("message") or ""), "red"),
    )
    if fault.get("upid"):
        yield (("  task ", "dim"), (one_line(fault["upid"]), "dim"))
    for key, label in _LISTS:
        for item in fault.get(key) or ():
            yield ((f"  {label}: ", "dim"), (one_line(item), "bold" if key == "left" else ""))
    if fault.get("remedy"):
        yield (("  do this: ", "bold"), (one_line(fault["remedy"]), "bold green"))


def _moment(text: Any) -> float:
    time = parse_time(text)
    return time.timestamp() if time else 0.0
