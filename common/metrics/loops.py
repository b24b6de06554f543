"""Signs of life of loops: when each last did its work, and when it is to do so again."""

from __future__ import annotations

from common import clock
from common.metrics import table


def done(loop: str, period_seconds: float) -> None:
    """Record that a loop did its work, and does so again within the period."""
    table.LOOP_SUCCESS.set(clock.seconds(), loop)
    table.LOOP_PERIOD.set(period_seconds, loop)


def failed(loop: str) -> None:
    """Record that a turn of it failed."""
    table.LOOP_FAILURES.count(loop)
