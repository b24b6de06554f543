"""The story of a request: what happened, where, in what order, and why.

The explanation of the API becomes lines: a head for each server, then for each operation one
timeline of its state changes, steps, decisions and faults, oldest first, with a bar where each
step lies within the operation. What the API doesn't show (an owner reads no hosts and tasks, an
older release has less) is left out, not an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from common.counting import counted
from common.story.decision import decision_lines
from common.story.labels import label
from common.story.summary import retry_line, summary
from common.story.text import Line, duration, facts_of, one_line, parse_time, seconds_between
from common.story.timeline import (
    beginning,
    length,
    moment,
    result_of,
    states_of,
    tasks_and_facts,
)

Facts: TypeAlias = Mapping[str, Any]

_BAR_WIDTH = 24
_STATES = {
    "done": "green",
    "failed": "bold red",
    "refused": "bold red",
    "running": "yellow",
    "queued": "yellow",
    "unwinding": "bold yellow",
}
_RESULTS = {"Success": "green", "Error": "bold red"}
#: room for the time column, so that what belongs to an entry stands under it
_INDENT = " " * 14
#: what an explanation may say of its subject, besides servers
_SUBJECTS = ("port", "volume", "snapshot", "transfer", "image")
_IN_HEAD = {"name", "status"}


@dataclass(frozen=True)
class Entry:
    """An event with its time: its lines; the time is printed in front of the first."""

    at: str
    """ISO 8601; empty: when isn't known."""
    rank: int
    """Order among entries of the same time."""
    lines: tuple[Line, ...]


def explanation_lines(
    explanation: Facts, servers: Mapping[str, Facts] | None = None
) -> list[Line]:
    """Return the whole story.

    :param explanation: ``{"subject": …, "operations": […]}`` of the API.
    :param servers: what is known of servers beyond it, by UUID: name, status, host.
    """
    operations = explanation.get("operations") or ()
    lines = [*summary_lines(explanation, servers), *subject_lines(explanation)]
    if not operations:
        return [*lines, ((f"{explanation.get('subject') or ''}: nothing was done", "dim"),)]
    shown = None
    obstacle = (explanation.get("move") or {}).get("obstacle")
    for operation in operations:
        uuid = str(operation.get("server") or "")
        if uuid and uuid != shown:
            lines.append(_server_line(uuid, (servers or {}).get(uuid) or {}))
            shown = uuid
            if obstacle:
                lines.append((("can't be moved now: ", "dim"), (one_line(obstacle), "yellow")))
        resource = operation.get("resource") or {}
        if not uuid and resource.get("id"):
            kind, name = one_line(resource.get("type") or ""), one_line(resource["id"])
            lines.append(((f"{kind} ", "dim"), (name, "bold")))
        if lines and lines[-1]:
            lines.append(())
        lines.extend(operation_lines(operation))
    return lines


def summary_lines(
    explanation: Facts, servers: Mapping[str, Facts] | None = None
) -> Iterator[Line]:
    """Yield what happened, why and what to do, and an empty line; nothing where nothing was done.

    Arguments as for ``explanation_lines``.
    """
    found = summary(explanation, servers)
    if found is None:
        return
    styles = ("bold", "bold red" if found.is_bad else "", "bold green")
    for text, style in zip((found.what, found.why, found.remedy), styles, strict=True):
        if text:
            yield ((text, style),)
    yield ()


def subject_lines(explanation: Facts) -> Iterator[Line]:
    """Yield a line that says what another resource is now; none for requests and servers."""
    for kind in _SUBJECTS:
        facts = explanation.get(kind)
        if not facts:
            continue
        rest = {name: value for name, value in facts.items() if name not in _IN_HEAD}
        shown = "  ".join(f"{name}={value}" for name, value in facts_of(rest))
        name = one_line(facts.get("name") or facts.get("id") or "")
        status = one_line(facts.get("status") or "")
        yield ((f"{kind} ", "dim"), (name, "bold"), (f"  {status}", "yellow"), (f"  {shown}", ""))


def operation_lines(operation: Facts) -> list[Line]:
    """Return one operation: its head, its timeline, how it ended."""
    lines = [_head(operation)]
    started = beginning(operation)
    entries = sorted(_entries(operation), key=lambda e: (moment(e.at or started), e.rank))
    for entry in entries:
        offset = seconds_between(started, entry.at)
        when = f"{'+' + duration(offset):>12}  " if offset is not None else _INDENT
        lines.append(((when, "dim"), *entry.lines[0]))
        lines.extend(((_INDENT, ""), *line) for line in entry.lines[1:])
    if operation.get("message") and not _is_repeated(operation):
        lines.append(((_INDENT, ""), (one_line(operation["message"]), "bold red")))
    retry = retry_line(operation)
    if retry:
        lines.append(((_INDENT, ""), (retry, "yellow")))
    if retry and operation.get("retry"):
        lines.append(((_INDENT, ""), (f"to try it at once: {operation['retry']}", "bold")))
    gone = forgotten(operation)
    if gone:
        lines.append(((_INDENT, ""), (gone, "dim")))
    return lines


def forgotten(operation: Facts) -> str | None:
    """Return that details of the operation are not kept any more, None where they are."""
    facts = operation.get("forgotten")
    if not facts:
        return None
    days = facts.get("after_days") or 0
    return (
        "the details of this operation (steps, decisions, faults) were forgotten "
        f"{counted(days, 'day')} after its end"
    )


def other_faults(operation: Facts) -> list[Facts]:
    """Return the faults, less those that only repeat why a decision found no host."""
    reasons = {decision.get("reason") for decision in operation.get("decisions") or ()}
    return [
        fault
        for fault in operation.get("faults") or ()
        if fault.get("message") not in reasons or any(fault.get(name) for name in _MORE)
    ]


#: what a fault may have besides its message
_MORE = ("host", "upid", "log_tail", "cleaned", "left", "remedy")


def _is_repeated(operation: Facts) -> bool:
    """Return whether a fault or a decision repeats the operation's message."""
    shown = {fault.get("message") for fault in operation.get("faults") or ()}
    shown |= {decision.get("reason") for decision in operation.get("decisions") or ()}
    return operation.get("message") in shown


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


def _server_line(uuid: str, server: Facts) -> Line:
    name, state, host = (one_line(server.get(key) or "") for key in ("name", "status", "host"))
    return (
        (f"{name} " if name else "server ", "bold"),
        (uuid, "dim"),
        (f"  {state}" if state else "", "bold"),
        (f" on {host}" if host else "", ""),
    )


def _head(operation: Facts) -> Line:
    state = str(operation.get("state") or "unknown")
    took = seconds_between(beginning(operation), operation.get("finished_at"))
    attempts = operation.get("attempts")
    began = parse_time(beginning(operation))
    return (
        (label(operation.get("action") or "operation"), "bold cyan"),
        (f"  {state}", _STATES.get(state, "yellow")),
        (", held" if operation.get("held") else "", "bold yellow"),
        (f" in {duration(took)}" if took is not None else "", ""),
        (f", {attempts} attempts" if attempts and attempts != 1 else "", "yellow"),
        (f"  {operation.get('request_id') or ''}", ""),
        (f"  {began:%Y-%m-%d %H:%M:%S} UTC" if began else "", "dim"),
    )


def _entries(operation: Facts) -> Iterator[Entry]:
    started = beginning(operation)
    events = operation.get("events") or ()
    total = length(operation)
    for change in operation.get("transitions") or ():
        yield Entry(str(change.get("at") or ""), 0, (_transition(change),))
    for event in events:
        offset = seconds_between(started, event.get("started_at")) or 0.0
        yield Entry(str(event.get("started_at") or ""), 1, tuple(_event(event, offset, total)))
    for decision in operation.get("decisions") or ():
        at = decision.get("at") or started or ""
        yield Entry(str(at), 2, tuple(decision_lines(decision)))
    for fault in other_faults(operation):
        at = fault.get("at") or operation.get("finished_at") or ""
        yield Entry(str(at), 3, tuple(_fault(fault)))


def _transition(change: Facts) -> Line:
    before, after = states_of(change)
    return ((before, "dim"), (" → ", "dim"), (after, "bold cyan"))


def _event(event: Facts, offset: float, total: float) -> Iterator[Line]:
    took = seconds_between(event.get("started_at"), event.get("finished_at"))
    result = result_of(event, took)
    yield (
        (f"{label(event.get('name') or 'step'):<32} ", ""),
        (bar(offset, took, total), "cyan" if result != "Error" else "red"),
        (f" {duration(took):>10}", ""),
        (f"  {result}", _RESULTS.get(result, "yellow")),
        (f"  {one_line(event.get('host'))}" if event.get("host") else "", "dim"),
    )
    upids, facts = tasks_and_facts(event)
    for upid in upids:
        yield (("  task ", "dim"), (upid, "dim"))
    if facts:
        yield (("  " + "  ".join(f"{label(name)}={value}" for name, value in facts), "dim"),)


#: fields of a fault that hold several things, and what they are called
_LISTS = (("log_tail", "log"), ("cleaned", "cleaned up"), ("left", "still there"))


def _fault(fault: Facts) -> Iterator[Line]:
    where = f" on {one_line(fault['host'])}" if fault.get("host") else ""
    yield (
        ("fault ", "bold red"),
        (f"{label(fault.get('category') or fault.get('code') or '')}{where}: ", "bold"),
        (one_line(fault.get("message") or ""), "red"),
    )
    if fault.get("upid"):
        yield (("  task ", "dim"), (one_line(fault["upid"]), "dim"))
    for key, heading in _LISTS:
        for item in fault.get(key) or ():
            yield ((f"  {heading}: ", "dim"), (one_line(item), "bold" if key == "left" else ""))
    if fault.get("remedy"):
        yield (("  do this: ", "bold"), (one_line(fault["remedy"]), "bold green"))
