"""The story of a request as one HTML page that needs nothing else: opened from disk, it shows
the waterfall of the steps, the matrix of hosts and filters, and the faults.

Built as a tree of elements, so that whatever a name or a log holds is text, never markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias
from xml.etree import ElementTree

from cli.render.style import STYLE
from common.story.decision import changes_that_would_do, how_many, retries
from common.story.explanation import forgotten, other_faults
from common.story.labels import label
from common.story.matrix import Matrix, matrix
from common.story.summary import summary
from common.story.text import duration, one_line, parse_time, seconds_between
from common.story.timeline import Mark, beginning, marks, states_of, tasks_and_facts

Facts: TypeAlias = Mapping[str, Any]
Element: TypeAlias = ElementTree.Element


def page(explanation: Facts, servers: Mapping[str, Facts] | None = None) -> str:
    """Return the whole page; arguments as for ``explanation_lines``."""
    operations = explanation.get("operations") or ()
    known = servers or {}
    subject = one_line(explanation.get("subject") or "")
    name = _title(operations, known) or subject
    html = ElementTree.Element("html", lang="en")
    head = _add(html, "head")
    _add(head, "meta", charset="utf-8")
    _add(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    _add(head, "title", name)
    _add(head, "style", STYLE)
    body = _add(html, "body")
    heading = _add(body, "h1", f"{name} ")
    if subject != name:
        _add(heading, "small", subject)
    short = summary(explanation, known)
    for line in short.lines() if short else ():
        _add(body, "p", line)
    for operation in operations:
        server = known.get(str(operation.get("server"))) or {}
        _operation(_add(body, "section"), operation, server)
    return "<!DOCTYPE html>\n" + ElementTree.tostring(html, encoding="unicode", method="html")


def _title(operations: Iterable[Facts], servers: Mapping[str, Facts]) -> str:
    """Return the names of the servers of the story; empty: none is known."""
    uuids = dict.fromkeys(str(one["server"]) for one in operations if one.get("server"))
    names = [one_line((servers.get(uuid) or {}).get("name") or "") for uuid in uuids]
    known = [name for name in names if name]
    if not known:
        return ""
    return known[0] if len(uuids) == 1 else f"{known[0]} and {len(uuids) - 1} more"


def _add(parent: Element, tag: str, text: Any = None, **attributes: str) -> Element:
    named = {name.rstrip("_"): value for name, value in attributes.items()}
    element = ElementTree.SubElement(parent, tag, named)
    if text is not None:
        element.text = str(text)
    return element


def _operation(section: Element, operation: Facts, server: Facts) -> None:
    began = beginning(operation)
    took = seconds_between(began, operation.get("finished_at"))
    state = one_line(operation.get("state") or "unknown")
    heading = _add(section, "h2", f"{label(operation.get('action') or 'operation')} ")
    _add(heading, "span", state, class_=state)
    _add(heading, "small", f" {duration(took)}" if took is not None else "")
    known = ("request_id", "server", "project_id", "user_id", "started_at", "attempts")
    moment = parse_time(began)
    facts = {**operation, "started_at": moment and f"{moment:%Y-%m-%d %H:%M:%S} UTC"}
    shown = [(label(name), facts[name]) for name in known if facts.get(name)]
    if server.get("status"):
        shown.insert(0, ("status", server["status"]))
    listed = _add(section, "dl", class_="facts")
    for name, value in shown:
        pair = _add(listed, "div")
        _add(pair, "dt", name)
        _add(pair, "dd", one_line(value))
    message = one_line(operation.get("message") or "")
    if message:
        _add(section, "p", message, class_="reason")
    if gone := forgotten(operation):
        _add(section, "p", gone, class_="dim")
    _waterfall(section, operation)
    for decision in operation.get("decisions") or ():
        _decision(section, decision, message)
    for fault in other_faults(operation):
        _fault(section, fault, message)


def _table(parent: Element, headers: Iterable[str], kind: str) -> Element:
    table = _add(_add(parent, "div", class_="wide"), "table", class_=kind)
    row = _add(_add(table, "thead"), "tr")
    for header in headers:
        _add(row, "th", header)
    return _add(table, "tbody")


# --- the waterfall


def _waterfall(section: Element, operation: Facts) -> None:
    rows = _table(section, ("at", "step", "", "took", "result", "where"), "steps")
    attempt = 1
    for mark in marks(operation):
        if mark.attempt > attempt:
            attempt = mark.attempt
            _add(_add(rows, "tr", class_="attempt"), "td", f"attempt {attempt}", colspan="6")
        if mark.is_change:
            row = _add(rows, "tr", class_="dim")
            _add(row, "td", f"+{duration(mark.offset)}", class_="at")
            _add(row, "td", " → ".join(states_of(mark.facts)), class_="move", colspan="5")
        else:
            _step(rows, mark)


def _step(rows: Element, step: Mark) -> None:
    result, event = step.result, step.facts
    lines = _more(event)
    is_open = bool(lines) and result == "Error"
    row = _add(rows, "tr", class_=f"{result} open" if is_open else result)
    _add(row, "td", f"+{duration(step.offset)}", class_="at")
    _details(_add(row, "td", class_="step"), event, () if is_open else lines)
    lane = _add(row, "td", class_="lane")
    left, width = 100 * step.left, 100 * step.width
    _add(lane, "div", class_="bar", style=f"left:{left:.2f}%;width:{width:.2f}%")
    _add(row, "td", duration(step.took), class_="took")
    _add(row, "td", label(result), class_="result")
    _add(row, "td", one_line(event.get("host") or ""))
    if is_open:
        # An error message spans the whole width.
        cell = _add(_add(rows, "tr"), "td", class_="more", colspan="6")
        _add(cell, "pre", "\n".join(lines))


def _more(event: Facts) -> list[str]:
    """Return a step's tasks and facts."""
    upids, facts = tasks_and_facts(event)
    return [f"task {upid}" for upid in upids] + [f"{label(name)}: {text}" for name, text in facts]


def _details(cell: Element, event: Facts, lines: Sequence[str]) -> None:
    """Return the step's name, with its details folded."""
    if not lines:
        cell.text = label(event.get("name"))
        return
    folded = _add(cell, "details")
    _add(folded, "summary", label(event.get("name")))
    _add(folded, "pre", "\n".join(lines))


# --- decisions and faults


def _decision(section: Element, decision: Facts, shown: str) -> None:
    """``shown``: the texts of the operation shown already."""
    chosen = decision.get("host") or ("a host" if decision.get("placed") else None)
    heading = _add(section, "h3", f"Scheduler: {one_line(chosen) if chosen else 'nowhere'} ")
    attempt = decision.get("attempt") or 1
    nth = f"attempt {attempt}" if attempt != 1 else ""
    _add(heading, "small", ", ".join(filter(None, (nth, how_many(decision)))))
    reason = one_line(decision.get("reason") or "")
    would_do = () if reason else changes_that_would_do(decision)
    for text in (reason, *(f"would do: {change}" for change in would_do)):
        if text and text != shown:
            _add(section, "p", text, class_="" if chosen else "reason")
    for claim in decision.get("claims") or ():
        words = f"claim {one_line(claim.get('host'))}: {one_line(claim.get('result'))}"
        _add(section, "p", f"{words}{retries(claim)}", class_="dim")
    others = [one_line(one.get("host")) for one in decision.get("alternates") or ()]
    if others:
        _add(section, "p", f"would have done as well: {', '.join(others)}", class_="dim")
    counts = decision.get("counts") or decision.get("refused") or {}
    refused = [
        f"{label(name)} ({count})" for name, count in counts.items() if isinstance(count, int)
    ] or [label(name) for name in decision.get("refused_by") or ()]
    if refused:
        _add(section, "p", f"refused by: {', '.join(refused)}", class_="dim")
    _matrix(section, matrix(decision))


def _matrix(section: Element, found: Matrix) -> None:
    if not (found.filters or found.weighers):
        return
    filters, weighers = tuple(map(label, found.filters)), tuple(map(label, found.weighers))
    rows = _table(section, ("host", *filters, *weighers), "matrix")
    for host in found.rows:
        row = _add(rows, "tr", class_="chosen" if host.chosen else "")
        _add(row, "td", f"{one_line(host.name)}{' ★' if host.chosen else ''}")
        for name, verdict in zip(filters, host.verdicts, strict=True):
            kind = {True: "passed", None: "dim skipped"}.get(verdict.passed, "refused")
            _cell(row, name, one_line(verdict.text), kind)
        for name, score in zip(weighers, host.scores, strict=True):
            _cell(row, name, "" if score is None else f"{score:+.3f}", "")


def _cell(row: Element, name: str, text: str, kind: str) -> None:
    """Return a cell with its column's name, shown where a narrow screen has no head."""
    cell = _add(row, "td", text, class_=kind)
    cell.set("data-label", name)


def _fault(section: Element, fault: Facts, shown: str) -> None:
    """``shown``: the texts of the operation shown already."""
    box = _add(section, "div", class_="fault")
    where = f" on {one_line(fault['host'])}" if fault.get("host") else ""
    _add(box, "strong", f"{label(fault.get('category') or 'fault')}{where}")
    message = one_line(fault.get("message") or "")
    if message != shown:
        _add(box, "p", message)
    if fault.get("upid"):
        _add(box, "p", f"task {one_line(fault['upid'])}", class_="dim")
    if fault.get("log_tail"):
        _add(box, "pre", "\n".join(map(one_line, fault["log_tail"])))
    for key, words in (("cleaned", "cleaned up"), ("left", "still there")):
        if fault.get(key):
            _add(box, "p", f"{words}: {', '.join(map(one_line, fault[key]))}")
    if fault.get("remedy"):
        _add(_add(box, "p", "do this: "), "code", one_line(fault["remedy"]))
