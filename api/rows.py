"""The rows of an API's table: a path, the resource that serves it, and what of it answers."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from web.guard import Api, C, Handler, operation_of, responders, with_guard
from web.protected import Served


@dataclass(frozen=True)
class Row:
    """One path."""

    path: str
    resource: Any
    """An object, or a class that is made without arguments."""
    methods: Mapping[str, str | tuple[str, ...]]
    """{HTTP method: names of the resource's methods}: the first of them at the request's version
    answers."""
    actions: Mapping[str, str | Handler] = field(default_factory=dict)
    """{action in the body of a POST: method of the resource}."""
    guard: Mapping[str, Any] = field(default_factory=dict)
    """What the guards of its operations have in place of what their resource says."""

    def names(self, http_method: str) -> tuple[str, ...]:
        """Return the resource's methods that may answer an HTTP method."""
        names = self.methods.get(http_method, ())
        return (names,) if isinstance(names, str) else names

    def handlers(self, http_method: str) -> list[Handler]:
        """Return the operations that may answer an HTTP method."""
        return [self._handler(name) for name in self.names(http_method)]

    def acting(self) -> dict[str, Handler]:
        """Return {action: operation}."""
        return {name: self._handler(method) for name, method in self.actions.items()}

    def served(self) -> Iterator[Served]:
        """Yield its operations."""
        for method in self.methods:
            for handler in self.handlers(method):
                yield method, self.path, operation_of(handler)
        for handler in self.acting().values():
            yield "POST", self.path, operation_of(handler)

    def _handler(self, name: str | Handler) -> Handler:
        method = getattr(_made(self.resource), name) if isinstance(name, str) else name
        return with_guard(method, **self.guard) if self.guard else method


@functools.cache
def _made(resource: Any) -> Any:
    return resource() if isinstance(resource, type) else resource


def resources(api: Api[C], rows: Iterable[Row], prefix: str) -> dict[str, object]:
    """Return a table as Falcon's resources by path, below `prefix`."""
    return {
        prefix + row.path: responders(
            api, {method: row.handlers(method) for method in row.methods}, row.acting()
        )
        for row in rows
    }
