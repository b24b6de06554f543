"""What browsers of one project need not ask for again: that nothing has changed since a moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future

#: how old an answer may be: with a page's interval, others' changes are seen within three seconds
SECONDS = 1.0
#: an answer so old is still where the next question begins, so that it holds for others as well
_BEGINS_SECONDS = 60.0
#: projects
_MOST = 10_000


class _Question:
    """Whether something has changed since a moment: asked by one, answered to others too."""

    def __init__(self, since: str, at: float) -> None:
        self.since, self.at = since, at
        self._answer: Future[bool] = Future()

    def put(self, ask: Callable[[str], bool]) -> bool:
        """Ask it; return the answer, or raise what `ask` raises."""
        try:
            changed = ask(self.since)
            self._answer.set_result(changed)
            return changed
        finally:
            # A refusal is only for who asked, as others have tokens of their own: they wait no
            # longer. An answer can't be cancelled any more.
            self._answer.cancel()

    def wait(self) -> bool | None:
        """Return the answer once it is known; None: there is none."""
        try:
            return self._answer.result()
        except CancelledError:
            return None

    @property
    def may_be_unchanged(self) -> bool:
        """Whether its answer isn't known yet, or nothing has changed."""
        return not self._answer.done() or self.wait() is False


class Unchanged:
    """Asks once for all browsers that show the same servers. One for a process."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._lock = threading.Lock()
        self._asked: dict[Hashable, _Question] = {}

    def is_changed(self, whose: Hashable, since: str, ask: Callable[[str], bool]) -> bool:
        """Return whether something has changed since a moment.

        ``whose``: what all that share an answer may see. ``ask`` asks the API about a moment;
        what it raises is raised. While one browser's question is open others wait for its answer.
        """
        question, is_new = self._question(whose, since)
        changed = question.put(ask) if is_new else question.wait()
        if changed is False:
            return False
        return (bool(changed) and question.since == since) or ask(since)

    def _question(self, whose: Hashable, since: str) -> tuple[_Question, bool]:
        """Return the question whose answer says it, and whether it is to be asked."""
        now = self._timer()
        with self._lock:
            last = self._asked.get(whose)
            if last is not None and last.since <= since and now - last.at < SECONDS:
                return last, False
            earliest = since
            if last is not None and now - last.at < _BEGINS_SECONDS and last.may_be_unchanged:
                earliest = min(since, last.since)
            if len(self._asked) >= _MOST:
                self._asked.clear()
            made = self._asked[whose] = _Question(earliest, now)
            return made, True
