"""The other way in which Neutron writes a path: `/v2.0/networks.json`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from web.wsgi import Wsgi

_SUFFIX = ".json"


class WithoutSuffix:
    """WSGI layer: takes the suffix from paths of the API; JSON is all that there is."""

    def __init__(self, app: Wsgi) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Serve the request."""
        path = environ.get("PATH_INFO", "")
        if path.startswith("/v2.0/"):
            environ["PATH_INFO"] = path.removesuffix(_SUFFIX)
        return self._app(environ, start_response)
