"""The story of a request as one HTML page that needs nothing else: opened from disk, it shows
the waterfall of the steps, the matrix of hosts and filters, and the faults.

Built as a tree of elements, so that whatever a name or a log holds is text, never markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias
from xml.etree import ElementTree

from cli.render.decision import changes_that_would_do, hosts_counted, retries
from cli.render.explanation import beginning, forgotten
from cli.render.matrix import Matrix, matrix
from cli.render.text import duration, facts_of, one_line, seconds_between

Facts: TypeAlias = Mapping[str, Any]
Element: TypeAlias = ElementTree.Element

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --ok: #2a7; --bad: #d33; --step: #37b; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 78rem;
       padding: 0 1rem; }
h1 small, h2 small, h3 small, .dim { opacity: .65; font-weight: normal; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem; }
th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid var(--line);
         vertical-align: top; }
td.lane { width: 45%; position: relative; }
.bar { position: absolute; top: .45rem; height: .8rem; min-width: 3px; border-radius: 2px;
       background: var(--step); }
.Error .bar, .Error .result, .refused, .failed { color: var(--bad); }
.Error .bar { background: var(--bad); }
.passed, .done { color: var(--ok); }
.fault { border-left: 4px solid var(--bad); padding: .3rem 1rem; margin: 1rem 0; }
pre, code { font: 13px/1.4 ui-monospace, monospace; white-space: pre-wrap; }
tr.chosen { font-weight: 600; }
.wide { overflow-x: auto; }
section + section { border-top: 2px solid var(--line); margin-top: 2rem; }
tr.attempt td { font-weight: 600; padding-top: .8rem; }
td:first-child, td.took { white-space: nowrap; }
details pre { overflow-wrap: anywhere; margin: .3rem 0 .3rem 1rem; opacity: .8; }
"""


def page(explanation: Facts, servers: Mapping[str, Facts] | None = None) -> str:
    """Return the whole page; arguments as for ``explanation_lines``."""
    subject = one_line(explanation.get("subject") or "")
    html = ElementTree.Element("html", lang="en")
    head = _add(html, "head")
    _add(head, "meta", charset="utf-8")
    _add(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    _add(head, "title", f"micronova explain {subject}")
    _add(head, "style", _STYLE)
    body = _add(html, "body")
    _add(_add(body, "h1", "What happened "), "small", subject)
    for operation in explanation.get("operations") or ():
        server = (servers or {}).get(str(operation.get("server"))) or {}
        _operation(_add(body, "section"), operation, server)
    return "<!DOCTYPE html>\n" + ElementTree.tostring(html, encoding="unicode", method="html")


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
    heading = _add(section, "h2", f"{one_line(operation.get('action') or 'operation')} ")
    _add(heading, "span", state, class_=state)
    _add(heading, "small", f" {duration(took)}" if took is not None else "")
    known = ("request_id", "server", "project_id", "user_id", "started_at", "attempts")
    facts = {**operation, "started_at": began}
    words = [f"{name} {facts[name]}" for name in known if facts.get(name)]
    if server.get("name"):
        words.insert(0, f"{server['name']} {server.get('status') or ''}")
    _add(section, "p", "  ·  ".join(map(one_line, words)), class_="dim")
    if operation.get("message"):
        _add(section, "p", one_line(operation["message"]), class_="failed")
    if gone := forgotten(operation):
        _add(section, "p", gone, class_="dim")
    _waterfall(section, operation)
    for decision in operation.get("decisions") or ():
        _decision(section, decision)
    for fault in operation.get("faults") or ():
        _fault(section, fault)


def _table(parent: Element, headers: Iterable[str]) -> Element:
    table = _add(_add(parent, "div", class_="wide"), "table")
    row = _add(_add(table, "thead"), "tr")
    for header in headers:
        _add(row, "th", header)
    return _add(table, "tbody")


# --- the waterfall


def _waterfall(section: Element, operation: Facts) -> None:
    started = beginning(operation)
    marks = [
        *(("", change.get("at"), change.get("at"), change) for change in _all(operation)),
        *(
            (str(e.get("name") or "step"), e.get("started_at"), e.get("finished_at"), e)
            for e in operation.get("events") or ()
        ),
    ]
    times = [seconds_between(started, end) or 0.0 for _, _, end, _ in marks]
    total = max([*times, seconds_between(started, operation.get("finished_at")) or 0.0, 0.001])
    rows = _table(section, ("at", "step", "", "took", "result", "where"))
    attempt = 1
    for name, start, end, facts in sorted(marks, key=lambda mark: str(mark[1])):
        offset = seconds_between(started, start) or 0.0
        if int(facts.get("attempt") or 1) > attempt:
            attempt = int(facts["attempt"])
            _add(_add(rows, "tr", class_="attempt"), "td", f"attempt {attempt}", colspan="6")
        if name:
            _step(rows, facts, offset, seconds_between(start, end), total)
        else:
            row = _add(rows, "tr", class_="dim")
            _add(row, "td", f"+{duration(offset)}")
            _add(row, "td", _move(facts), colspan="5")


def _all(operation: Facts) -> Iterable[Facts]:
    return operation.get("transitions") or ()


def _move(change: Facts) -> str:
    states = [change.get("from") or {}, change.get("to") or {}]
    return " → ".join(
        f"{state.get('vm_state')}"
        + (f" ({state['task_state']})" if state.get("task_state") else "")
        for state in states
    )


def _step(rows: Element, event: Facts, offset: float, took: float | None, total: float) -> None:
    result = one_line(event.get("result") or ("running" if took is None else ""))
    row = _add(rows, "tr", class_=result)
    _add(row, "td", f"+{duration(offset)}")
    _details(_add(row, "td"), event, result)
    lane = _add(row, "td", class_="lane")
    left = min(100.0, 100 * offset / total)
    width = min(100.0 - left, 100 * (total - offset if took is None else took) / total)
    _add(lane, "div", class_="bar", style=f"left:{left:.2f}%;width:{width:.2f}%")
    _add(row, "td", duration(took), class_="took")
    _add(row, "td", result, class_="result")
    _add(row, "td", one_line(event.get("host") or ""))


def _details(cell: Element, event: Facts, result: str) -> None:
    """The step's name; behind it, open where it failed, its tasks and facts."""
    detail = dict(event.get("detail") or {})
    upids = detail.pop("upids", None) or [event.get("upid")]
    lines = [f"task {one_line(upid)}" for upid in upids if upid]
    lines += [f"{name}: {value}" for name, value in facts_of(detail)]
    if not lines:
        cell.text = one_line(event.get("name"))
        return
    folded = _add(cell, "details", **({"open": "open"} if result == "Error" else {}))
    _add(folded, "summary", one_line(event.get("name")))
    _add(folded, "pre", "\n".join(lines))


# --- decisions and faults


def _decision(section: Element, decision: Facts) -> None:
    chosen = decision.get("host") or ("a host" if decision.get("placed") else None)
    heading = _add(section, "h3", f"Scheduler: {one_line(chosen) if chosen else 'nowhere'} ")
    took = f" in {duration(decision['seconds'])}" if decision.get("seconds") else ""
    attempt = decision.get("attempt") or 1
    nth = f"attempt {attempt}, " if attempt != 1 else ""
    considered = hosts_counted(decision.get("considered") or 0)
    _add(heading, "small", f"{nth}{considered} considered{took}")
    would_do = [f"would do: {change}" for change in changes_that_would_do(decision)]
    for text in (decision.get("reason"), *would_do):
        if text:
            _add(section, "p", one_line(text))
    for claim in decision.get("claims") or ():
        words = f"claim {one_line(claim.get('host'))}: {one_line(claim.get('result'))}"
        _add(section, "p", f"{words}{retries(claim)}", class_="dim")
    others = [one_line(one.get("host")) for one in decision.get("alternates") or ()]
    if others:
        _add(section, "p", f"would have done as well: {', '.join(others)}", class_="dim")
    counts = decision.get("counts") or decision.get("refused") or {}
    refused = [f"{count} by {name}" for name, count in counts.items() if isinstance(count, int)]
    if refused:
        _add(section, "p", f"refused: {', '.join(map(one_line, refused))}", class_="dim")
    _matrix(section, matrix(decision))


def _matrix(section: Element, found: Matrix) -> None:
    if not (found.filters or found.weighers):
        return
    rows = _table(section, ("host", *found.filters, *found.weighers))
    for host in found.rows:
        row = _add(rows, "tr", class_="chosen" if host.chosen else "")
        _add(row, "td", f"{one_line(host.name)}{' ★' if host.chosen else ''}")
        for verdict in host.verdicts:
            kind = {True: "passed", None: "dim"}.get(verdict.passed, "refused")
            _add(row, "td", one_line(verdict.text), class_=kind)
        for score in host.scores:
            _add(row, "td", "" if score is None else f"{score:+.3f}")


def _fault(section: Element, fault: Facts) -> None:
    box = _add(section, "div", class_="fault")
    where = f" on {one_line(fault['host'])}" if fault.get("host") else ""
    _add(box, "strong", f"{one_line(fault.get('category') or 'fault')}{where}")
    _add(box, "p", one_line(fault.get("message") or ""))
    if fault.get("upid"):
        _add(box, "p", f"task {one_line(fault['upid'])}", class_="dim")
    if fault.get("log_tail"):
        _add(box, "pre", "\n".join(map(one_line, fault["log_tail"])))
    for key, label in (("cleaned", "cleaned up"), ("left", "still there")):
        if fault.get(key):
            _add(box, "p", f"{label}: {', '.join(map(one_line, fault[key]))}")
    if fault.get("remedy"):
        _add(_add(box, "p", "do this: "), "code", one_line(fault["remedy"]))
