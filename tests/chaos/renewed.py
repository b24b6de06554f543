"""What the tests of a module share until one fails: what that leaves hinders no other."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

import pytest

Key = TypeVar("Key")
Shared = TypeVar("Shared")


class FailedBeforeError(Exception):
    """Ends what a failed test has used, without the assertions at its end."""


class Renewed(Generic[Key, Shared]):
    """What was last asked for, by its key; another one after a failure."""

    def __init__(
        self, session: pytest.Session, make: Callable[[Key], AbstractContextManager[Shared]]
    ) -> None:
        self._session, self._make = session, make
        self._running: tuple[Key, AbstractContextManager[Shared], Shared] | None = None
        self._failed = session.testsfailed

    def __call__(self, key: Key) -> Shared:
        """Return the one of this key, started if it isn't there."""
        if self._running is not None and (self._running[0] != key or self._is_spoilt()):
            self.close()
        if self._running is None:
            self._failed = self._session.testsfailed
            made = self._make(key)
            self._running = (key, made, made.__enter__())
        return self._running[2]

    def close(self) -> None:
        """End it."""
        running, self._running = self._running, None
        if running is None:
            return
        if self._is_spoilt():
            running[1].__exit__(FailedBeforeError, FailedBeforeError(), None)
        else:
            running[1].__exit__(None, None, None)

    def _is_spoilt(self) -> bool:
        return self._session.testsfailed != self._failed
