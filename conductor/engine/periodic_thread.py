"""A daemon thread that calls a function periodically, and at once when it is woken."""

from __future__ import annotations

import threading
from collections.abc import Callable


class PeriodicThread:
    """Such a thread. An exception of the function ends it."""

    def __init__(self, name: str, turn: Callable[[], float | None]) -> None:
        """``turn`` returns the seconds until its next call; None ends the thread.

        After ``stop`` it is called at least once more, at once, so that it can finish its work.
        """
        self._turn = turn
        self._news = threading.Condition()
        self._woken, self._stopped = False, False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def stopped(self) -> bool:
        """Whether ``stop`` was called."""
        return self._stopped

    def start(self) -> None:
        """Start the thread, which makes the first call at once."""
        self._thread.start()

    def wake(self) -> None:
        """Make the next call at once, or right after the current one."""
        with self._news:
            self._woken = True
            self._news.notify_all()

    def stop(self, seconds: float) -> None:
        """Ask the thread to end, and wait at most ``seconds`` for its last call."""
        with self._news:
            self._stopped = True
            self._news.notify_all()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        while (pause := self._turn()) is not None:
            with self._news:
                self._news.wait_for(lambda: self._woken or self._stopped, pause)
                self._woken = False
