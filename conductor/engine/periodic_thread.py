"""A thread that works in turns: again after a pause, or as soon as it is woken."""

from __future__ import annotations

import threading
from collections.abc import Callable


class PeriodicThread:
    """Such a thread. What its turns raise ends it: they are to catch what they can survive."""

    def __init__(self, name: str, turn: Callable[[], float | None]) -> None:
        """``turn`` returns the seconds until the next one; None: there is none.

        After ``stop`` it is called once more at least, at once, so that it can end its work.
        """
        self._turn = turn
        self._news = threading.Condition()
        self._woken, self._stopped = False, False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def stopped(self) -> bool:
        """Whether turns are to end."""
        return self._stopped

    def start(self) -> None:
        """Take the first turn."""
        self._thread.start()

    def wake(self) -> None:
        """Have the next turn taken at once; one that runs is followed by another."""
        with self._news:
            self._woken = True
            self._news.notify_all()

    def stop(self, seconds: float) -> None:
        """Have turns end, and wait for the last one so long."""
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
