"""What takes long to start, kept for the next file that needs it and else stopped.

A fixture of the whole session would keep clouds running, and busy, beside all later tests.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pytest

T = TypeVar("T")

_started: list[Shared[Any]] = []
"""In the order of their starts."""


class Shared(Generic[T]):
    """One thing for consecutive files whose tests use the fixture of that name."""

    def __init__(self, fixture: str) -> None:
        self._fixture = fixture
        self._key: object = None
        self._stack: contextlib.ExitStack | None = None
        self._made: T | None = None

    def get(self, make: Callable[[], contextlib.AbstractContextManager[T]], key: object = "") -> T:
        """Return what `make` starts, or what an earlier call with this key has started."""
        if self._stack is not None and self._key != key:
            self.close()
        if self._stack is None:
            stack = contextlib.ExitStack()
            self._made = stack.enter_context(make())
            self._stack, self._key = stack, key
            _started.append(self)
        assert self._made is not None
        return self._made

    def is_used_by(self, item: pytest.Item | None) -> bool:
        """Return whether a test uses it."""
        return self._fixture in getattr(item, "fixturenames", ())

    def close(self) -> None:
        """Stop it."""
        stack, self._stack, self._made = self._stack, None, None
        _started.remove(self)
        if stack is not None:
            stack.close()


def close_unused(ended: pytest.Item, following: pytest.Item | None) -> None:
    """At the end of a file, stop what the next one doesn't begin with; the last started first."""
    if following is not None and following.path == ended.path:
        return
    with contextlib.ExitStack() as stack:
        for one in _started:
            if not one.is_used_by(following):
                stack.callback(one.close)
