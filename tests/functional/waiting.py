"""Waiting for something to become true, for tests of what runs beside them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

PATIENCE = 4
"""How many times as long a wait may take on a slow machine. A wait that succeeds ends at once."""


def eventually(check: Callable[[], Any], seconds: float = 60, pause_seconds: float = 0.1) -> Any:
    """Return the first true answer of `check`; fail with its last one."""
    deadline = time.monotonic() + PATIENCE * seconds
    pause = threading.Event()
    while True:
        answer = check()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"never: {answer!r}"
        pause.wait(pause_seconds)


def while_it_waits(
    engine: sa.Engine,
    first: Callable[[sa.Connection], Any],
    second: Callable[[sa.Connection], Any],
) -> Any:
    """Return what the second transaction does that waits for the first one's locks, on
    PostgreSQL."""
    found: list[Any] = []
    with engine.connect() as one, engine.connect() as other, engine.connect() as watching:
        first(one)
        pid = other.scalar(sa.text("SELECT pg_backend_pid()"))

        def run() -> None:
            found.append(second(other))
            other.commit()

        thread = threading.Thread(target=run)
        thread.start()
        waits = sa.text("SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = :pid")
        eventually(lambda: watching.scalar(waits, {"pid": pid}), pause_seconds=0.01)
        one.commit()
        thread.join(60)
    return found[0]
