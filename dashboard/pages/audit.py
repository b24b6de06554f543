"""The audit: what clusters and record don't agree on, and what has no owner, to be reaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from common.story.findings import is_orphan, runs, summary, unproven
from common.story.text import facts_of
from dashboard.answer import Answer, Redirect, view
from dashboard.cloud import COMPUTE, Call
from dashboard.page import Page
from dashboard.rights import May
from dashboard.visit import Visit

REFRESH_SECONDS = 2
_AUDITS = 5
_FINDINGS = 1000
_ENDED = frozenset({"done", "failed"})
_SEVERITIES = ("leak", "damage", "notice")
#: what the list shows → whether it is of healed findings
SHOWN: Mapping[str, str] = {
    "open": "Open findings",
    "orphans": "Orphans: things without an owner",
    "healed": "Healed findings",
}


def index(visit: Visit) -> Answer:
    """Show the last audit, and the findings by kind."""
    asked = visit.query.get("show", "")
    shown = asked if asked in SHOWN else "open"
    query: dict[str, Any] = {"limit": _FINDINGS, "kind": visit.query.get("kind", "").strip()}
    if shown == "healed":
        query["healed"] = "true"
    audits, found = visit.cloud.together(
        Call(COMPUTE, "/audits", {"limit": _AUDITS}), Call(COMPUTE, "/audit/findings", query)
    )
    findings = [one for one in found["findings"] if shown != "orphans" or is_orphan(one)]
    newest = next(iter(audits["audits"]), None)
    ended = next((one for one in audits["audits"] if one["state"] == "done"), None)
    return view(
        "audit.html",
        kinds=_by_kind(findings),
        shown=shown,
        choices=SHOWN,
        kind=query["kind"],
        newest=newest,
        is_running=newest is not None and newest["state"] not in _ENDED,
        ended=ended,
        summary=_summary(ended, shown, len(findings)),
        refresh_seconds=REFRESH_SECONDS,
    )


def run(visit: Visit) -> Answer:
    """Begin an audit; the list follows it."""
    said = "The clusters and the record are being compared."
    return visit.begin("/audit", said, visit.cloud.post, COMPUTE, "/audits", None)


def show(visit: Visit) -> Answer:
    """Show one finding with its evidence."""
    return _finding(visit, "finding.html")


def ask(visit: Visit) -> Answer:
    """Ask whether what was found is to be removed or put right."""
    return _finding(visit, "finding_heal.html")


def heal(visit: Visit) -> Answer:
    """Request the repair of a finding whose resource is proven ours."""
    number = visit.params["number"]
    body = {"heal": {"force": visit.field("force") == "true"}}
    path = f"/audit/findings/{number}/action"
    done = visit.changed(visit.cloud.post, COMPUTE, path, body)
    if done is not None:
        healing = done["heal"]
        said = f"{healing['answer']} The next audit says whether it is gone."
        visit.note(said, "begun" if healing["operation_id"] else "done")
    return Redirect(f"/audit/{number}")


def _finding(visit: Visit, template: str) -> Answer:
    found = visit.cloud.get(COMPUTE, f"/audit/findings/{visit.params['number']}")["finding"]
    return view(
        template,
        finding=found,
        evidence=facts_of(found["evidence"] or {}),
        unproven=unproven(found),
        status=runs(found),
        verb="Reap" if is_orphan(found) else "Heal",
    )


def _by_kind(findings: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Return findings by kind, the most serious first."""
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for one in findings:
        by_kind.setdefault(str(one["kind"]), []).append(one)
    return sorted(by_kind.items(), key=lambda pair: (_rank(pair[1][0]), pair[0]))


def _rank(finding: Mapping[str, Any]) -> int:
    severity = finding["severity"]
    return _SEVERITIES.index(severity) if severity in _SEVERITIES else len(_SEVERITIES)


def _summary(ended: Mapping[str, Any] | None, shown: str, count: int) -> str:
    if ended is None:
        return "No audit has run yet."
    report = ended["report"]
    left = count if shown == "open" else sum((report.get("open") or {}).values())
    return summary(report, left)


_FINDING = "/audit/{number:int}"
PAGES = (
    Page("/audit", index, May.OPERATE, calls=2),
    Page("/audit", run, May.OPERATE, "POST"),
    Page(_FINDING, show, May.OPERATE),
    Page(f"{_FINDING}/heal", ask, May.OPERATE),
    Page(f"{_FINDING}/heal", heal, May.OPERATE, "POST"),
)
