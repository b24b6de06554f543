"""WSGI layer: counts requests and measures how long their answers take to make."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from common.metrics import table

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

ROUTE = "micronova.route"
"""In a request's environment: the template of its path, once an operation answers it."""
ACTION = "micronova.action"
"""The same: the action that its body names."""

#: the methods of HTTP that have a label of their own: a client may send any word
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Measured:
    """Measures an API; stands in front of all its other layers."""

    def __init__(self, app: Wsgi, api: str) -> None:
        self._app, self._api = app, api

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        began = time.perf_counter()
        status = "500"

        def start(line: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            nonlocal status
            status = line[:3]
            return start_response(line, headers, exc_info)

        table.HTTP_IN_PROGRESS.add(1, self._api)
        try:
            return self._app(environ, start)
        finally:
            table.HTTP_IN_PROGRESS.add(-1, self._api)
            self._record(environ, status, time.perf_counter() - began)

    def _record(self, environ: dict[str, Any], status: str, seconds: float) -> None:
        method = environ.get("REQUEST_METHOD", "")
        labels = (
            self._api,
            method if method in _METHODS else "other",
            environ.get(ROUTE, ""),
            environ.get(ACTION, ""),
        )
        table.HTTP_REQUESTS.count(*labels, status)
        if ROUTE in environ:
            table.HTTP_SECONDS.observe(seconds, *labels[:2])
            table.HTTP_ROUTE_SECONDS.count(*labels, by=seconds)
