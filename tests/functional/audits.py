"""The audit as the last assertion of a test: it runs, heals what it may, and must find nothing.

Audits(cloud).assert_clean()        # of tests.functional.cloud or tests.functional.distributed
"""

from __future__ import annotations

import json
from typing import Any, Protocol

from tests.functional.waiting import eventually

AUDIT_SECONDS = 180


class Running(Protocol):
    """A cloud of either harness."""

    def connection(self, name: str = ...) -> Any:
        """An openstacksdk connection."""


class Audits:
    """The audit of a running cloud, asked as an administrator."""

    def __init__(self, cloud: Running) -> None:
        self.compute = cloud.connection("micronova-admin").compute

    def _get(self, path: str) -> Any:
        answer = self.compute.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def run(self) -> dict[str, Any]:
        """Have one run to its end; returns its report."""
        begun = self.compute.post("/audits")
        assert begun.status_code == 202, begun.text
        audit_id = begun.json()["audit"]["id"]

        def ended() -> Any:
            audit = self._get(f"/audits/{audit_id}")["audit"]
            return audit if audit["state"] in {"done", "failed"} else None

        audit = eventually(ended, AUDIT_SECONDS, 0.2)
        assert audit["state"] == "done", audit
        report: dict[str, Any] = audit["report"]
        return report

    def open(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Open findings."""
        query = f"?kind={kind}" if kind else ""
        found: list[dict[str, Any]] = self._get(f"/audit/findings{query}")["findings"]
        return found

    def healed(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Findings that are no more."""
        query = f"&kind={kind}" if kind else ""
        path = f"/audit/findings?healed=true{query}"
        found: list[dict[str, Any]] = self._get(path)["findings"]
        return found

    def assert_clean(self, seconds: float = 120, *, unaided: bool = False) -> dict[str, Any]:
        """Run audits until nothing is in flux and nothing is left; fail with what is.

        With ``unaided`` no audit, of this cloud's whole life, may have had to heal anything.
        Returns the last report: ``healed`` says what this audit itself had to put right.
        """

        def clean() -> Any:
            report = self.run()
            done = report["clean"] and report["complete"] and not report["in_flux"]
            return report if done else None

        try:
            report: dict[str, Any] = eventually(clean, seconds, 1)
        except AssertionError:
            raise AssertionError(self.summary()) from None
        if unaided:
            helped = [one for one in self.healed() if one["healed_by"]]
            assert helped == [], json.dumps(helped, indent=1)
        return report

    def summary(self) -> str:
        """The last report and every open finding, for a failure's text."""
        last = self._get("/audits?limit=1")["audits"]
        return json.dumps({"audit": last, "findings": self.open()}, indent=1)
