"""Waiting for something to become true, for tests of what runs beside them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 4
"""How many times as long a wait may take on a slow machine. One that succeeds ends at once."""


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
