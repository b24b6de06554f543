"""Paths with a suffix, which Neutron accepts: `/v2.0/networks.json`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from web.wsgi import Wsgi

_SUFFIX = ".json"


class WithoutSuffix:
    """WSGI layer: removes the suffix; all answers are JSON."""

    def __init__(self, app: Wsgi) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Serve the request."""
        path = environ.get("PATH_INFO", "")
        if path.startswith("/v2.0/"):
            environ["PATH_INFO"] = path.removesuffix(_SUFFIX)
        return self._app(environ, start_response)
