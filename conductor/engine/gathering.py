"""Groups work that several threads bring at once: the first of them does it for all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from common.log import logger

LOG = logger(__name__)

T = TypeVar("T")


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
