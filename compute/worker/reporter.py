"""The outbox of reports: sent to the conductor in batches, in order.

A batch is sent every 20 ms at most: each costs a message and two transactions, whatever its size.
An outcome after such a pause is sent at once. Reports of one operation in a batch become one. What
can't be sent is kept and tried again; if the process dies with it, the operation's lease runs out
and its command comes again.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from common import codec
from common.context import internal
from common.log import logger
from common.messages.reports import Report
from common.rpc import events
from common.rpc.events import ConductorEvents

if TYPE_CHECKING:
    from common.rpc.messaging import oslo_messaging

LOG = logger(__name__)

BATCH = 200
GATHER_SECONDS = 0.02
RETRY_SECONDS = 1.0

_NULL, _REPLACED = r"\u0000", r"\ufffd"
_SURROGATE = re.compile(r"\\ud[89a-f][0-9a-f]{2}")


class Reporter:
    """A thread and its queue."""

    def __init__(
        self, transport: oslo_messaging.Transport, gather_seconds: float = GATHER_SECONDS
    ) -> None:
        self._conductor = events.to_conductor(transport)
        self._changed = threading.Condition()
        self._queue: list[Report] = []
        self._gather_seconds = gather_seconds
        self._sent_at = float("-inf")
        self._hurry = False
        self._sending = False
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="compute-reporter", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self, seconds: float = 5.0) -> None:
        """Send what is queued, for at most that long."""
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._queue and not self._sending, timeout=seconds)
            self._closed = True
            self._changed.notify_all()
        self._thread.join(seconds)

    def report(self, report: Report) -> None:
        """Queue a report; returns at once."""
        with self._changed:
            self._queue.append(report)
            if len(self._queue) == 1 or report.outcome is not None:
                self._changed.notify_all()

    def _loop(self) -> None:
        while batch := self._next():
            try:
                reports = sendable(merged(batch))
                self._conductor.cast(internal(), ConductorEvents.report, reports=reports)
            except Exception:
                LOG.exception("%d reports could not be sent; they will be sent later.", len(batch))
                self._put_back(batch)
            else:
                self._sent()

    def _next(self) -> list[Report]:
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            self._gather()
            batch, self._queue = self._queue[:BATCH], self._queue[BATCH:]
            self._sending = bool(batch)
            return batch

    def _gather(self) -> None:
        """Wait for more reports; with an outcome only until the interval is over."""
        until = time.monotonic() + self._gather_seconds
        while not (self._hurry or self._closed) and len(self._queue) < BATCH:
            if any(report.outcome is not None for report in self._queue):
                until = min(until, self._sent_at + self._gather_seconds)
            left = until - time.monotonic()
            if left <= 0:
                return
            self._changed.wait(left)

    def _sent(self) -> None:
        with self._changed:
            self._sending = False
            self._sent_at = time.monotonic()
            self._changed.notify_all()

    def _put_back(self, batch: list[Report]) -> None:
        with self._changed:
            self._queue[:0] = batch
            self._sending = False
            self._changed.wait_for(lambda: self._closed, timeout=RETRY_SECONDS)
            if self._closed:
                self._queue.clear()


def sendable(reports: list[Report]) -> list[Any]:
    """Return the reports, with U+FFFD for what can't be sent or stored.

    Hypervisors' texts may have anything, and one such report would hold up all others for ever.
    """
    try:
        text = codec.dumps(reports)
    except TypeError:
        plain = json.dumps([asdict(report) for report in reports], default=str)
        text = _SURROGATE.sub(lambda _: _REPLACED, plain)
    else:
        if _NULL not in text:
            return list(reports)
    found: list[Any] = codec.loads(text.replace(_NULL, _REPLACED))
    return found


def merged(reports: Iterable[Report]) -> list[Report]:
    """Return one report per operation and attempt: each step's last state, and the outcome.

    What follows an outcome belongs to another run of the command and is not merged.
    """
    found: list[Report] = []
    open_at: dict[tuple[int, int, str], int] = {}
    for report in reports:
        key = (report.operation_id, report.attempt, report.host)
        at = open_at.get(key)
        if at is None:
            at = open_at[key] = len(found)
            found.append(report)
        else:
            steps = {step.sequence: step for step in (*found[at].steps, *report.steps)}
            found[at] = replace(found[at], steps=tuple(steps.values()), outcome=report.outcome)
        if report.outcome is not None:
            del open_at[key]
    return found
