"""What runs and what waits on hosts, by queue."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common import clock
from dashboard.cloud import rows
from dashboard.pages.meters import Meter, Warns

PATH = "/queues"


@dataclass(frozen=True)
class Line:
    """One queue of a host."""

    meter: Meter
    """How many run, of how many at a time."""
    waiting: int
    oldest: float | None
    """The longest wait, seconds; None: none waits."""


@dataclass(frozen=True)
class HostQueues:
    """The queues of one host, as its agent last reported them."""

    lines: Sequence[Line]
    """That of operations is the first."""
    reported_seconds_ago: float

    @property
    def reported_at(self) -> str:
        """When the agent reported them."""
        at = clock.utcnow() - datetime.timedelta(seconds=self.reported_seconds_ago)
        return at.isoformat(timespec="seconds")

    @property
    def waiting(self) -> int:
        """How many wait in all of them."""
        return sum(line.waiting for line in self.lines)

    @property
    def oldest(self) -> float | None:
        """How long the one has waited that waits longest."""
        return max((line.oldest for line in self.lines if line.oldest is not None), default=None)


def by_host(answer: Any) -> Mapping[str, HostQueues]:
    """Return the queues of each host of an answer whose agent reports them."""
    return {
        host["host"]: HostQueues(
            [_line(one) for one in host["queues"]], host["reported_seconds_ago"]
        )
        for host in rows(answer, "hosts")
        if host["queues"]
    }


def health_by_host(answer: Any) -> Mapping[str, str]:
    """Return why hosts of an answer can't be used, of those that can't."""
    return {one["host"]: one["health"] for one in rows(answer, "hosts") if one["health"]}


def _line(queue: Mapping[str, Any]) -> Line:
    title = queue["name"].capitalize() if queue["kind"] == queue["name"] else queue["name"]
    if queue["shared"]:
        title += " (shared)"
    # All slots in use is how it should be while there is work; what waits is shown beside.
    meter = Meter(title, queue["running"], queue["width"], when=Warns.NEVER)
    return Line(meter, queue["waiting"], queue["oldest_waiting_seconds"])
