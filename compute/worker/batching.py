"""Requests that one run answers together."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Coalesced:
    """An action that runs once after any number of requests during its last run."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._lock = threading.Lock()
        self._asked = self._runs = False

    def __call__(self) -> None:
        """Run the action; return at once where another thread runs it, which then repeats it."""
        with self._lock:
            self._asked = True
            if self._runs:
                return
            self._runs = True
        try:
            while self._take():
                self._action()
        except BaseException:
            with self._lock:
                self._runs = False
            raise

    def _take(self) -> bool:
        with self._lock:
            asked, self._asked = self._asked, False
            self._runs = asked
            return asked
