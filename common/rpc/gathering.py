"""Groups work that several threads bring at once: the first of them does it for all."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from common.errors import Unavailable
from common.log import logger
from common.rpc import UNKNOWN, deadlines

LOG = logger(__name__)

T = TypeVar("T")
R = TypeVar("R")


class Gathering(Generic[T]):
    """Passes items to ``work``: the first at once, those added while it runs together afterwards.

    So no item waits for a batch to fill, and under load more items share one transaction.
    """

    def __init__(self, work: Callable[[list[T]], None], most: int) -> None:
        """``most``: items that are worked on together."""
        self._work, self._most = work, most
        self._lock = threading.Lock()
        self._waiting: list[T] = []
        self._busy = False

    def add(self, items: Iterable[T]) -> bool:
        """Return whether the caller must ``drain``; if not, another thread does."""
        with self._lock:
            self._waiting.extend(items)
            if self._busy or not self._waiting:
                return False
            self._busy = True
            return True

    def drain(self) -> None:
        """Work until nothing waits any more."""
        while batch := self._next():
            try:
                self._work(batch)
            except Exception:
                # What waits behind them must not. Whose work was lost is found by its lease.
                LOG.exception("%d items were not worked on.", len(batch))

    def _next(self) -> list[T]:
        with self._lock:
            batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            self._busy = bool(batch)
            return batch


def is_unknown(error: Exception) -> bool:
    """Return whether an error says that what failed may have been carried out."""
    return isinstance(error, Unavailable) and error.details.get("outcome") == UNKNOWN


class Apart(Exception):
    """Nothing was done for an item together with others: it is worked on by itself."""


class _Call(Generic[T, R]):
    """An item that a thread has brought, and what became of it."""

    def __init__(self, item: T) -> None:
        self.item = item
        self.until = deadlines.current()
        self.turn = threading.Event()
        """Set when it was worked on, or its thread is to work on all that wait."""
        self.answers: list[R | Exception] = []
        """The one, once it was worked on."""

    @property
    def is_apart(self) -> bool:
        return any(isinstance(one, Apart) for one in self.answers)


@dataclasses.dataclass
class _Line(Generic[T, R]):
    """Those of one kind that wait while others of it are worked on."""

    kind: object
    waiting: list[_Call[T, R]] = dataclasses.field(default_factory=list)


class Combining(Generic[T, R]):
    """Passes items that threads bring to ``work``, and returns to each thread its own answer.

    The first of a kind is worked on at once; those that come before that ends are worked on
    together afterwards, by the thread of the first of them. ``work`` returns an answer, or the
    exception to raise, for each item in order. Where that is ``Apart``, and if ``work`` raises for
    several, nothing was done, and each is worked on by itself, in its own thread; unless it raises
    that the outcome isn't known, which is raised in all of them.
    """

    def __init__(self, work: Callable[[list[T]], Sequence[R | Exception]], most: int) -> None:
        """``most``: items that are worked on together."""
        self._work, self._most = work, most
        self._lock = threading.Lock()
        self._lines: list[_Line[T, R]] = []

    def do(self, item: T, kind: object = None) -> R:
        """Return the answer for an item, together with others of an equal ``kind``."""
        mine: _Call[T, R] = _Call(item)
        line, first = self._join(mine, kind)
        if not first:
            mine.turn.wait()
        if not mine.answers:
            try:
                self._do_all([mine] if first else self._next_of(line))
            finally:
                self._pass_on(line)
        if mine.is_apart:
            mine.answers = list(self._work([item]))
        [answer] = mine.answers
        if isinstance(answer, Exception):
            raise answer
        deadlines.carried_out()
        return answer

    def _join(self, mine: _Call[T, R], kind: object) -> tuple[_Line[T, R], bool]:
        """Return its line, and whether it is the first, which waits for nobody."""
        with self._lock:
            for line in self._lines:
                if line.kind == kind:
                    line.waiting.append(mine)
                    return line, False
            self._lines.append(_Line(kind))
            return self._lines[-1], True

    def _next_of(self, line: _Line[T, R]) -> list[_Call[T, R]]:
        with self._lock:
            together, line.waiting = line.waiting[: self._most], line.waiting[self._most :]
            return together

    def _pass_on(self, line: _Line[T, R]) -> None:
        """Have the next thread work, on its own item and those behind it."""
        with self._lock:
            if line.waiting:
                line.waiting[0].turn.set()
            else:
                self._lines.remove(line)

    def _do_all(self, together: Sequence[_Call[T, R]]) -> None:
        answers: Sequence[R | Exception] = [Apart() for _ in together]
        try:
            with deadlines.earliest(one.until for one in together):
                answers = self._work([one.item for one in together])
        except Exception as error:  # noqa: BLE001 - raised where each of them waits
            if len(together) == 1 or is_unknown(error):
                answers = [error for _ in together]
        finally:
            # Also where this thread is ended: nobody waits for it then.
            for one, answer in zip(together, answers, strict=True):
                one.answers = [answer]
                one.turn.set()
