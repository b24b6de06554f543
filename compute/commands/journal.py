"""The journal of one operation: its steps, reported as they happen.

The end of a step and the start of the next are sent in one report; a task's id is sent as soon
as it is known. Each reported step has all details known so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from common import clock
from common.messages.commands import Command
from common.messages.reports import Outcome, Report, Step
from common.metrics import table

Send = Callable[[Report], None]

SUCCESS = "Success"
ERROR = "Error"


class Journal:
    """One job's steps. Used by the job's own thread only."""

    def __init__(self, command: Command, send: Send) -> None:
        self.command = command
        self._send = send
        self._sequence = 0
        self._now: Step | None = None
        self._finished: Step | None = None

    def begin(self, name: str) -> None:
        """Begin a step; it is reported together with the end of the one before."""
        self._now = Step(name, self._sequence, clock.utcnow())
        self._sequence += 1
        before, self._finished = self._finished, None
        self._report((before, self._now) if before else (self._now,))

    def note(self, upid: str | None, detail: Mapping[str, Any]) -> None:
        """Add facts to the running step; a task's id is reported at once."""
        if self._now is None:
            return
        merged = {**self._now.detail, **detail}
        if upid is not None:
            merged["upids"] = [*merged.get("upids", ()), upid]
        self._now = replace(self._now, upid=upid or self._now.upid, detail=merged)
        if upid is not None:
            self._report((self._now,))

    def progress(self, detail: Mapping[str, Any]) -> None:
        """Report the running step's progress at once; replaces its last progress."""
        if self._now is not None:
            self._now = replace(self._now, detail={**self._now.detail, "progress": dict(detail)})
            self._report((self._now,))

    def end(self, result: str, detail: Mapping[str, Any]) -> None:
        """End the step; it is sent with the next report."""
        if self._now is None:
            return
        ended_at = clock.utcnow()
        seconds = (ended_at - self._now.started_at).total_seconds()
        table.STEPS.count(self._now.name, result.lower())
        table.STEP_SECONDS.observe(max(0.0, seconds), self._now.name)
        known = dict(self._now.detail)
        if result == SUCCESS:
            known.pop("progress", None)
        self._finished = replace(
            self._now, finished_at=ended_at, result=result, detail={**known, **detail}
        )
        self._now = None

    def aside(self, send: Send) -> Journal:
        """Return a journal of further steps, which are not this one's until ``adopt``."""
        other = Journal(self.command, send)
        other._sequence = self._sequence
        return other

    def adopt(self, other: Journal, reports: Iterable[Report]) -> None:
        """Report the steps of a journal aside; its last step replaces the last one of this."""
        for report in reports:
            self._send(report)
        self._finished, self._sequence = other._finished, other._sequence

    def close(self, outcome: Outcome) -> None:
        """Report how the command ended."""
        before, self._finished = self._finished, None
        self._report((before,) if before else (), outcome)

    def _report(self, steps: tuple[Step, ...], outcome: Outcome | None = None) -> None:
        command = self.command
        self._send(
            Report(
                command.operation_id,
                command.attempt,
                command.resource_type,
                command.resource_id,
                command.placed.host,
                steps,
                outcome,
                command.worker,
            )
        )
