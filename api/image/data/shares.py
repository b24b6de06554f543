"""Slots for long-running work in one process, shared among projects.

A project gets another slot while more slots are free than it holds: a project alone gets half of
them, and the next project still finds one free.
"""

from __future__ import annotations

import collections
import contextlib
import threading
from collections.abc import Callable, Iterator

from common.errors import Unavailable


class Shares:
    """The places for one kind of work."""

    def __init__(self, places: int, what: str) -> None:
        """``what``: for messages, in the plural."""
        self._places, self._what = places, what
        self._lock = threading.Lock()
        self._taken: collections.Counter[str] = collections.Counter()

    def take(self, project_id: str | None) -> Callable[[], None]:
        """Take a place; return what gives it back, once. Raises Unavailable."""
        who = project_id or ""
        with self._lock:
            free = self._places - self._taken.total()
            mine = self._taken[who]
            if mine >= free:
                whose = " of this project" if mine else ""
                raise Unavailable(f"Too many {self._what}{whose} at a time; try again later.")
            self._taken[who] += 1
        held = [who]

        def give_back() -> None:
            with self._lock:
                if held:
                    self._taken[held.pop()] -= 1
                    self._taken += collections.Counter()  # forgets who has none

        return give_back

    @contextlib.contextmanager
    def place(self, project_id: str | None) -> Iterator[None]:
        """Hold a place. Raises Unavailable."""
        give_back = self.take(project_id)
        try:
            yield
        finally:
            give_back()
