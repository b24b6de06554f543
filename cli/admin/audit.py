"""``micronova audit``: compare the clusters with the record."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from cli.audits import answer, fresh
from cli.command import Lister, argument, flag
from cli.errors import CommandFailed
from common.story.findings import summary
from common.story.text import duration, seconds_between

LEFT, INCOMPLETE = 1, 2

_HEADERS = ("Finding", "Kind", "Severity", "Subject", "Age", "Heals By", "Cause")
_LONG = ("Remedy", "Last Answer", "Evidence")


class RunAudit(Lister):
    """Compare servers, VMs, volumes, allocations, addresses and VMIDs; show the differences.

    What is proven to be this cloud's is healed. Exit code: 0 everything agrees, 1 differences are
    left, 2 not everything could be looked at.
    """

    arguments = (
        flag("--last", help="Show the differences that the last audit left; run none"),
        flag("--long", help="Show what to do, the last attempt and the evidence too"),
        argument(
            "--timeout",
            metavar="<seconds>",
            type=float,
            default=900.0,
            help="How long to wait for the audit (default: 900)",
        ),
    )

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the audit; the exit code shows the result."""
        self._code = 0
        try:
            return super().run(parsed_args) or self._code
        except CommandFailed as error:
            self.say(str(error))
            return INCOMPLETE

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each open finding."""
        audit = self._last() if parsed_args.last else fresh(self.cloud, parsed_args.timeout)
        report = audit["report"]
        found = findings(self.cloud.compute)
        self._code = LEFT if found else 0
        for text in report["unseen"]:
            self.say(f"Not seen: {text}")
        if not report["complete"]:
            self._code = INCOMPLETE
        self.say(summary(report, len(found)))
        rows = [_row(one, parsed_args.long) for one in found]
        return _HEADERS + (_LONG if parsed_args.long else ()), rows

    def _last(self) -> Mapping[str, Any]:
        ended = answer(self.cloud.compute.get("/audits"))["audits"]
        for audit in ended:
            if audit["state"] == "done":
                found: Mapping[str, Any] = audit
                return found
        raise CommandFailed("No audit was run yet")


def findings(compute: Any) -> list[dict[str, Any]]:
    """Return every open finding, oldest first."""
    found: list[dict[str, Any]] = answer(compute.get("/audit/findings"))["findings"]
    return found


def since(moment: str) -> str:
    """Return how long ago a time of the API is, in words."""
    seconds = seconds_between(moment, datetime.datetime.now(datetime.UTC).isoformat())
    return duration(max(1.0, seconds or 0.0))


def _row(finding: Mapping[str, Any], long: bool) -> tuple[Any, ...]:
    row = (
        finding["id"],
        finding["kind"],
        finding["severity"],
        finding["subject"],
        since(finding["first_seen_at"]),
        finding["heal"] or "",
        finding["cause"],
    )
    if not long:
        return row
    return (*row, finding["remedy"] or "", finding["answer"] or "", _shown(finding["evidence"]))


def _shown(evidence: Mapping[str, Any]) -> str:
    pairs: Iterable[str] = (f"{name}={value}" for name, value in evidence.items() if value)
    return ", ".join(pairs)
